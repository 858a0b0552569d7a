package envoy

import (
	"fmt"
	"math"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// connectAttempts is how many endpoints a connection tries before it is closed.
// Nothing has been sent to those that failed, so that trying another one is safe.
const connectAttempts = 3

// tcpLog is for connections.
var tcpLog = logFormat{
	line: `[%START_TIME%] "TCP %DOWNSTREAM_LOCAL_ADDRESS% %REQUESTED_SERVER_NAME%" ` +
		`%RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% ` +
		`"%DOWNSTREAM_REMOTE_ADDRESS%" "%UPSTREAM_HOST%"`,
	fields: map[string]string{
		"bytes_received":                    "%BYTES_RECEIVED%",
		"bytes_sent":                        "%BYTES_SENT%",
		"connection_termination_details":    "%CONNECTION_TERMINATION_DETAILS%",
		"downstream_local_address":          "%DOWNSTREAM_LOCAL_ADDRESS%",
		"downstream_remote_address":         "%DOWNSTREAM_REMOTE_ADDRESS%",
		"duration":                          "%DURATION%",
		"protocol":                          "TCP",
		"requested_server_name":             "%REQUESTED_SERVER_NAME%",
		"response_flags":                    "%RESPONSE_FLAGS%",
		"start_time":                        "%START_TIME%",
		"upstream_cluster":                  "%UPSTREAM_CLUSTER%",
		"upstream_host":                     "%UPSTREAM_HOST%",
		"upstream_transport_failure_reason": "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
	},
}

// forwardName names a chain that forwards bytes, among those of its Gateway.
func forwardName(listener string, c *ir.Chain) string {
	if c.Hostname == "" {
		return listener + "-*"
	}
	return listener + "-" + c.Hostname
}

// forwarderName names what a chain does with connections. A chain that does another thing with TLS
// has another name for it, which no hostname makes: while a proxy still has the chain from before,
// nothing comes by it to the backends of the new one, be it decrypted where it should be passed
// through, or without the certificate that clients should have.
func forwarderName(listener string, c *ir.Chain) string {
	name := forwardName(listener, c)
	switch {
	case c.TLS == nil:
		return name
	case c.TLS.Clients == nil:
		return name + "/terminated"
	}
	return name + "/clients-" + strconv.FormatUint(clientsGuard(c.TLS.Clients), 16)
}

// tcpProxyType is what the configuration of a filter must be that comes by name.
var tcpProxyType = constant(&tcpproxyv3.TcpProxy{
	StatPrefix: "x", ClusterSpecifier: &tcpproxyv3.TcpProxy_Cluster{Cluster: InvalidBackend},
}).TypeUrl

// forwarder is the filter of a chain that forwards connections. What a route says comes by
// name: Envoy gives it to new connections, and the chain, whose open ones would be cut if it
// changed, stays as it is. A chain without a route is another one, so that what is open when
// its route goes is cut in the end.
func forwarder(l *ir.Listener, c *ir.Chain) (*listenerv3.Filter, error) {
	if c.Forward.Routed() {
		return &listenerv3.Filter{
			Name: forwarderName(l.Name, c),
			ConfigType: &listenerv3.Filter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
				ConfigSource: ads(), TypeUrls: []string{tcpProxyType},
			}},
		}, nil
	}
	config, err := tcpProxy(l, c.Forward)
	if err != nil {
		return nil, err
	}
	return &listenerv3.Filter{
		Name: "envoy.filters.network.tcp_proxy", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config},
	}, nil
}

// Forwarder returns what the filter of a chain with a route does.
func Forwarder(l *ir.Listener, c *ir.Chain) (*Resource, error) {
	config, err := tcpProxy(l, c.Forward)
	if err != nil {
		return nil, err
	}
	name := forwarderName(l.Name, c)
	return resource(Extensions, name, &corev3.TypedExtensionConfig{Name: name, TypedConfig: config})
}

// closing answers a subscription to the configuration of a filter that has no route.
func closing(name string) *Resource {
	config := constant(&tcpproxyv3.TcpProxy{
		StatPrefix: InvalidBackend, ClusterSpecifier: &tcpproxyv3.TcpProxy_Cluster{Cluster: InvalidBackend},
	})
	r, err := resource(Extensions, name, &corev3.TypedExtensionConfig{Name: name, TypedConfig: config})
	if err != nil {
		panic(fmt.Sprintf("envoy: filter %q: %v", name, err))
	}
	return r
}

// tcpProxy forwards connections by weight. The share of backends that can't be
// used goes to a cluster that never exists, and so is closed at once.
//
// Half-closed connections stay open in the other direction. The idle timeout, in
// which no byte moves, is the one bound on peers that went without a word.
func tcpProxy(l *ir.Listener, f *ir.Forward) (*anypb.Any, error) {
	limit := limits(l.Client.Limits)
	m := &tcpproxyv3.TcpProxy{
		StatPrefix:         l.Name,
		MaxConnectAttempts: wrapperspb.UInt32(connectAttempts),
		IdleTimeout:        durationpb.New(limit.IdleTimeout),
	}
	if limit.Duration > 0 {
		m.MaxDownstreamConnectionDuration = durationpb.New(limit.Duration)
	}
	var backends []*ir.WeightedBackend
	if some, usable := weighted(f.Backends); usable {
		backends = some
	}
	switch len(backends) {
	case 0:
		m.ClusterSpecifier = &tcpproxyv3.TcpProxy_Cluster{Cluster: InvalidBackend}
	case 1:
		m.ClusterSpecifier = &tcpproxyv3.TcpProxy_Cluster{Cluster: ClusterName(backends[0].Backend)}
	default:
		var total uint64
		clusters := make([]*tcpproxyv3.TcpProxy_WeightedCluster_ClusterWeight, len(backends))
		for i, b := range backends {
			total += uint64(b.Weight)
			clusters[i] = &tcpproxyv3.TcpProxy_WeightedCluster_ClusterWeight{Name: ClusterName(b.Backend), Weight: b.Weight}
			if b.Backend.IsZero() {
				clusters[i].Name = InvalidBackend
			}
		}
		if total > math.MaxUint32 {
			return nil, fmt.Errorf("the weights of the backends add up to %d, more than %d", total, uint32(math.MaxUint32))
		}
		m.ClusterSpecifier = &tcpproxyv3.TcpProxy_WeightedClusters{
			WeightedClusters: &tcpproxyv3.TcpProxy_WeightedCluster{Clusters: clusters},
		}
	}
	var err error
	if m.AccessLog, err = accessLogs(l, tcpLog); err != nil {
		return nil, err
	}
	return pack(m)
}
