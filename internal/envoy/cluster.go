package envoy

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	commondnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/common/dns/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	upstreamhttpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

const (
	// concurrency bounds connections, requests and waiting requests of one
	// cluster. Envoy's 1,024 turns away honest traffic of one busy Service;
	// without any bound one dead backend could take all memory.
	concurrency = 1 << 16
	// retryFloor is how many retries may always be under way at once; beyond
	// it they may be a fifth of the requests (Envoy's default budget). Envoy's
	// own floor of 3 makes a rule's retries fail for no visible reason.
	retryFloor = 64
)

// breakers keep one backend from taking the proxy's resources.
var breakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
	MaxConnections:     wrapperspb.UInt32(concurrency),
	MaxPendingRequests: wrapperspb.UInt32(concurrency),
	MaxRequests:        wrapperspb.UInt32(concurrency),
	RetryBudget: &clusterv3.CircuitBreakers_Thresholds_RetryBudget{
		MinRetryConcurrency: wrapperspb.UInt32(retryFloor),
	},
}}}

const httpOptions = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// h2c speaks HTTP/2 without negotiation. HTTP/1.1, for WebSockets too, needs no
// words: it is the default.
var h2c = map[string]*anypb.Any{
	httpOptions: constant(&upstreamhttpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_{
			ExplicitHttpConfig: &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig{
				ProtocolConfig: &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
					Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
				},
			},
		},
	}),
}

// keepalive finds backends that are gone without a word, since streams of gRPC wait
// for them without a limit. TCP does it, because servers of gRPC take pings of
// HTTP/2 for an attack.
var keepalive = &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{
	KeepaliveTime:     wrapperspb.UInt32(60),
	KeepaliveInterval: wrapperspb.UInt32(30),
	KeepaliveProbes:   wrapperspb.UInt32(3),
}}

// dns resolves a name to one endpoint with all its addresses, tried in turn as
// browsers do: so localhost works whichever of 127.0.0.1 and ::1 is served.
var dns = &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{
	Name: "envoy.clusters.dns",
	TypedConfig: constant(&dnsv3.DnsCluster{
		DnsLookupFamily:              commondnsv3.DnsLookupFamily_ALL,
		AllAddressesInSingleEndpoint: true,
		RespectDnsTtl:                true,
	}),
}}

// Cluster returns a backend's cluster: its pool of connections. Envoy's
// defaults are left out, among them 5 s to connect.
func Cluster(b *ir.Backend) (*Resource, error) {
	name := ClusterName(b.Key())
	c := &clusterv3.Cluster{
		Name:                          name,
		AltStatName:                   statName(name),
		LbPolicy:                      clusterv3.Cluster_LEAST_REQUEST,
		CircuitBreakers:               circuitBreakers(b.Retry),
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(bufferLimit),
	}
	switch b.Protocol {
	case ir.H2C:
		c.TypedExtensionProtocolOptions = h2c
		c.UpstreamConnectionOptions = keepalive
	case ir.HTTP1, ir.WebSocket, ir.TCP, ir.UDP, "":
	default:
		return nil, fmt.Errorf("backend %s: unknown protocol %q", name, b.Protocol)
	}
	if !b.TLS.IsZero() {
		socket, err := upstreamTLS(&b.TLS, b.Protocol)
		if err != nil {
			return nil, fmt.Errorf("backend %s: %w", name, err)
		}
		c.TransportSocket = socket
	}
	if b.DNS == "" {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
		// The endpoints' name is the cluster's.
		c.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads()}
	} else {
		if err := checkHost(b.DNS); err != nil {
			return nil, fmt.Errorf("backend %s: %w", name, err)
		}
		c.ClusterDiscoveryType = dns
		if b.Outside {
			c.ClusterDiscoveryType = outsideDNS
			if b.Protocol != ir.TCP {
				options, err := outsideOptions(b.Protocol, b.Private)
				if err != nil {
					return nil, fmt.Errorf("backend %s: %w", name, err)
				}
				c.TypedExtensionProtocolOptions = options
			}
		}
		// A name that can't be resolved would keep an Envoy that starts from
		// everything else for 15 s.
		c.WaitForWarmOnInit = wrapperspb.Bool(false)
		c.LoadAssignment = &endpointv3.ClusterLoadAssignment{
			ClusterName: name,
			Endpoints:   []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{lbEndpoint(b.DNS, uint32(b.ConnectPort()))}}},
		}
	}
	r, err := resource(Clusters, name, c)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", name, err)
	}
	if !b.TLS.IsZero() {
		r = r.Awaiting(upstreamSecrets(&b.TLS)...)
	}
	return r, nil
}
