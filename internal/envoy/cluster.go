package envoy

import (
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	commondnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/common/dns/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	upstreamcodecv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
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

// protocolOptions are what is said of a backend's protocol; nil for HTTP/1.1, for WebSockets
// too, which needs no words.
func protocolOptions(b *ir.Backend) (map[string]*anypb.Any, error) {
	var filters []*hcmv3.HttpFilter
	if b.DNS != "" && b.Outside && b.Protocol != ir.TCP {
		check, err := addressCheck(b.Private)
		if err != nil {
			return nil, err
		}
		filters = append(filters, check)
	}
	if b.Use == ir.UseAuth {
		filters = append(filters, permission)
	}
	common, repeated := connectionOptions(&b.Settings.Connections), untaken(b)
	if len(filters) == 0 && common == nil {
		return plainOptions[plainOption{b.Protocol, repeated != nil}], nil
	}
	if len(filters) > 0 {
		filters = append(filters, upstreamCodec)
	}
	options, err := pack(&upstreamhttpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: explicit(b.Protocol), HttpFilters: filters, CommonHttpProtocolOptions: common, RetryPolicy: repeated,
	})
	return map[string]*anypb.Any{httpOptions: options}, err
}

// plainOption is what is said of most backends.
type plainOption struct {
	protocol ir.Protocol
	repeats  bool
}

// plainOptions are the options of backends without settings. Those without an entry need no words.
var plainOptions = func() map[plainOption]map[string]*anypb.Any {
	out := map[plainOption]map[string]*anypb.Any{}
	for _, o := range []plainOption{{ir.HTTP1, true}, {ir.WebSocket, true}, {ir.H2C, true}, {ir.H2C, false}} {
		options := &upstreamhttpv3.HttpProtocolOptions{UpstreamProtocolOptions: explicit(o.protocol)}
		if o.repeats {
			options.RetryPolicy = untakenPolicy
		}
		out[o] = map[string]*anypb.Any{httpOptions: constant(options)}
	}
	return out
}()

// connectionOptions are how long connections are used; nil where nothing is said of it.
func connectionOptions(c *ir.Connections) *corev3.HttpProtocolOptions {
	if c.MaxRequests == 0 && c.IdleTimeout == 0 {
		return nil
	}
	out := &corev3.HttpProtocolOptions{}
	if c.MaxRequests > 0 {
		out.MaxRequestsPerConnection = wrapperspb.UInt32(c.MaxRequests)
	}
	if c.IdleTimeout > 0 {
		out.IdleTimeout = duration(c.IdleTimeout)
	}
	return out
}

// explicit is a protocol that is not negotiated.
func explicit(p ir.Protocol) *upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_ {
	config := &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &corev3.Http1ProtocolOptions{}},
	}
	if p == ir.H2C {
		config.ProtocolConfig = &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}}
	}
	return &upstreamhttpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: config}
}

// upstreamCodec is the last of the filters that requests to a backend meet.
var upstreamCodec = &hcmv3.HttpFilter{
	Name:       "envoy.filters.http.upstream_codec",
	ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: constant(&upstreamcodecv3.UpstreamCodec{})},
}

// keepalive finds backends that are gone without a word, since streams of gRPC wait
// for them without a limit. TCP does it, because servers of gRPC take pings of
// HTTP/2 for an attack.
var keepalive = &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{
	KeepaliveTime:     wrapperspb.UInt32(60),
	KeepaliveInterval: wrapperspb.UInt32(30),
	KeepaliveProbes:   wrapperspb.UInt32(3),
}}

// keptAlive is keepalive after another silence.
func keptAlive(after time.Duration) *clusterv3.UpstreamConnectionOptions {
	seconds := uint32(min(after, 24*time.Hour) / time.Second) //nolint:gosec // a day
	return &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{
		KeepaliveTime:     wrapperspb.UInt32(seconds),
		KeepaliveInterval: wrapperspb.UInt32(min(seconds, 30)),
		KeepaliveProbes:   wrapperspb.UInt32(3),
	}}
}

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
		CircuitBreakers:               circuitBreakers(b),
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(bufferLimit),
	}
	if err := setBalancer(c, b); err != nil {
		return nil, fmt.Errorf("backend %s: %w", name, err)
	}
	switch b.Protocol {
	case ir.H2C:
		c.UpstreamConnectionOptions = keepalive
	case ir.HTTP1, ir.WebSocket, ir.TCP, ir.UDP, "":
	default:
		return nil, fmt.Errorf("backend %s: unknown protocol %q", name, b.Protocol)
	}
	setHealth(c, b)
	if d := b.Settings.ConnectTimeout; d > 0 {
		c.ConnectTimeout = duration(d)
	}
	if d := b.Settings.Connections.KeepAlive; d > 0 {
		c.UpstreamConnectionOptions = keptAlive(d)
	}
	options, err := protocolOptions(b)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", name, err)
	}
	c.TypedExtensionProtocolOptions = options
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
