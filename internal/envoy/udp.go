package envoy

import (
	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	matcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	udpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// maxDatagram is the size of the largest datagrams that are forwarded, beyond which
// IP has none. Envoy's 1,500 bytes cut off what has been put together from fragments.
const maxDatagram = 65535

// joined makes Envoy tell apart the datagrams that the kernel hands over in one piece.
// It asks the kernel to join them on every socket that listens, whatever is said here;
// without this it takes what is joined for one datagram, or cuts it off, so that HTTP/3
// loses a quarter of the packets of a fast sender.
var joined = wrapperspb.Bool(true)

// udpLog is for sessions.
var udpLog = logFormat{
	line: `[%START_TIME%] "UDP %DOWNSTREAM_LOCAL_ADDRESS%" ` +
		`%BYTES_RECEIVED% %BYTES_SENT% %DURATION% "%DOWNSTREAM_REMOTE_ADDRESS%" "%UPSTREAM_HOST%"`,
	fields: map[string]string{
		"bytes_received":            "%BYTES_RECEIVED%",
		"bytes_sent":                "%BYTES_SENT%",
		"downstream_local_address":  "%DOWNSTREAM_LOCAL_ADDRESS%",
		"downstream_remote_address": "%DOWNSTREAM_REMOTE_ADDRESS%",
		"duration":                  "%DURATION%",
		"protocol":                  "UDP",
		"start_time":                "%START_TIME%",
		"upstream_cluster":          "%UPSTREAM_CLUSTER%",
		"upstream_host":             "%UPSTREAM_HOST%",
	},
}

// udpProxy makes a listener forward datagrams. Each source address and port is a
// session, which stays with an endpoint until nothing has moved for a minute,
// Envoy's default, or the endpoint goes.
//
// Nothing that a route says is in the listener: when it changes, Envoy
// replaces it with its sessions. What a route says is in the endpoints.
func udpProxy(m *listenerv3.Listener, l *ir.Listener) error {
	// A socket for each worker: the kernel gives all packets of a source to the same.
	m.EnableReusePort = wrapperspb.Bool(true)
	m.PerConnectionBufferLimitBytes = nil
	m.UdpListenerConfig = &listenerv3.UdpListenerConfig{
		DownstreamSocketConfig: &corev3.UdpSocketConfig{MaxRxDatagramSize: wrapperspb.UInt64(maxDatagram), PreferGro: joined},
	}
	route, err := pack(&udpproxyv3.Route{Cluster: ClusterName(l.Chains[0].Forward.Pool)})
	if err != nil {
		return err
	}
	proxy := &udpproxyv3.UdpProxyConfig{
		StatPrefix: l.Name,
		RouteSpecifier: &udpproxyv3.UdpProxyConfig_Matcher{Matcher: &matcherv3.Matcher{
			OnNoMatch: &matcherv3.Matcher_OnMatch{OnMatch: &matcherv3.Matcher_OnMatch_Action{
				Action: &xdscorev3.TypedExtensionConfig{Name: "route", TypedConfig: route},
			}},
		}},
		UpstreamSocketConfig: &corev3.UdpSocketConfig{MaxRxDatagramSize: wrapperspb.UInt64(maxDatagram)},
	}
	if proxy.AccessLog, err = accessLogs(l, udpLog); err != nil {
		return err
	}
	config, err := pack(proxy)
	if err != nil {
		return err
	}
	m.ListenerFilters = []*listenerv3.ListenerFilter{{
		Name:       "envoy.filters.udp_listener.udp_proxy",
		ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: config},
	}}
	return nil
}

// PoolCluster returns the cluster of a UDP port's endpoints. By turns they get
// exactly their shares of the sources; by least requests those with many sources
// would be passed over, though datagrams come and go by themselves.
func PoolCluster(k ir.BackendKey) (*Resource, error) {
	name := ClusterName(k)
	return resource(Clusters, name, &clusterv3.Cluster{
		Name:                 name,
		LbPolicy:             clusterv3.Cluster_ROUND_ROBIN,
		CircuitBreakers:      breakers,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads()},
	})
}
