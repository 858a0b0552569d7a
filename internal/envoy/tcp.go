package envoy

import (
	"fmt"
	"math"

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

// forwardName names a chain that forwards bytes, among those of its listener.
func forwardName(listener string, c *ir.Chain) string {
	if c.Hostname == "" {
		return listener + "-*"
	}
	return listener + "-" + c.Hostname
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
	if m.AccessLog, err = accessLogs(&l.Telemetry, tcpLog); err != nil {
		return nil, err
	}
	return pack(m)
}
