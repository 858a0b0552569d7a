package envoy

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// setHealth has a cluster find endpoints that are not well. Where more than half of them are not, Envoy sends
// requests to all.
func setHealth(c *clusterv3.Cluster, b *ir.Backend) {
	if o := b.Settings.OutlierDetection; o.Errors > 0 {
		c.OutlierDetection = &clusterv3.OutlierDetection{
			Consecutive_5Xx:    wrapperspb.UInt32(o.Errors),
			Interval:           duration(o.Interval),
			BaseEjectionTime:   duration(o.Ejection),
			MaxEjectionTime:    duration(max(10*o.Ejection, o.Ejection)),
			MaxEjectionPercent: wrapperspb.UInt32(o.MaxPercent),
			// Nobody has asked for statistics of endpoints against each other.
			EnforcingSuccessRate: wrapperspb.UInt32(0),
		}
	}
	h := b.Settings.HealthCheck
	if h.Type == "" || h.Type == ir.GRPCCheck && b.Protocol != ir.H2C {
		return // Envoy would refuse the cluster: gRPC needs HTTP/2
	}
	check := &corev3.HealthCheck{
		Interval: duration(h.Interval), Timeout: duration(h.Timeout),
		// Envoy asks once a minute where there are no requests, and would learn late that an endpoint is gone.
		NoTrafficInterval:  duration(h.Interval),
		UnhealthyThreshold: wrapperspb.UInt32(h.Unhealthy), HealthyThreshold: wrapperspb.UInt32(h.Healthy),
	}
	switch h.Type {
	case ir.HTTPCheck:
		http := &corev3.HealthCheck_HttpHealthCheck{
			Host: checkHostname(b), Path: h.Path,
			// What is a success to probes of Kubernetes.
			ExpectedStatuses: []*typev3.Int64Range{{Start: 200, End: 400}},
		}
		if b.Protocol == ir.H2C {
			http.CodecClientType = typev3.CodecClientType_HTTP2
		}
		check.HealthChecker = &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: http}
	case ir.GRPCCheck:
		check.HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{
			ServiceName: h.Service, Authority: checkHostname(b),
		}}
	case ir.TCPCheck:
		check.HealthChecker = &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}}
	}
	c.HealthChecks = []*corev3.HealthCheck{check}
	// An endpoint that is no more is not asked whether it is well.
	c.IgnoreHealthOnHostRemoval = true
}

// checkHostname is the host that endpoints are asked for.
func checkHostname(b *ir.Backend) string {
	switch {
	case b.Settings.HealthCheck.Hostname != "":
		return b.Settings.HealthCheck.Hostname
	case b.TLS.ServerName != "":
		return b.TLS.ServerName
	case b.DNS != "":
		return b.DNS
	default:
		return b.Object.Name.Name + "." + b.Object.Name.Namespace + ".svc"
	}
}
