package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// tracing returns the tracing of a connection manager; nil for none.
func tracing(t *ir.Tracing) (*hcmv3.HttpConnectionManager_Tracing, error) {
	if t == nil {
		return nil, nil
	}
	config, err := pack(&tracev3.OpenTelemetryConfig{
		GrpcService: collectorService(&t.Collector),
		ServiceName: t.Collector.Service,
	})
	if err != nil {
		return nil, err
	}
	const perPercent = 10_000 // of a million
	return &hcmv3.HttpConnectionManager_Tracing{
		// The header x-client-trace-id is anybody's, and would have it traced.
		ClientSampling: &typev3.Percent{},
		RandomSampling: &typev3.Percent{Value: float64(t.Sampling) / perPercent},
		// A proxy is a service of its own: what comes in and what goes out are two spans.
		SpawnUpstreamSpan: wrapperspb.Bool(true),
		Provider: &tracev3.Tracing_Http{
			Name:       "envoy.tracers.opentelemetry",
			ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: config},
		},
	}, nil
}

// collectorService is how a collector is called.
func collectorService(c *ir.Collector) *corev3.GrpcService {
	return &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
		EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: CollectorName(c)},
	}}
}
