package envoy

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// CollectorName names the cluster of a collector. Names of backends begin with a
// namespace, which has no colon.
func CollectorName(c *ir.Collector) string {
	return "collector:" + net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
}

// Collector returns the cluster of a collector of telemetry.
func Collector(c *ir.Collector) (*Resource, error) {
	name := CollectorName(c)
	if err := checkHost(c.Host); err != nil {
		return nil, fmt.Errorf("collector %s: %w", c.Host, err)
	}
	m := &clusterv3.Cluster{
		Name:                          name,
		AltStatName:                   statName(name),
		TypedExtensionProtocolOptions: plainOptions[plainOption{ir.H2C, false}],
		UpstreamConnectionOptions:     keepalive,
		CircuitBreakers:               breakers,
		// A name that can't be resolved must not keep an Envoy from starting.
		WaitForWarmOnInit: wrapperspb.Bool(false),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: name,
			Endpoints:   []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{lbEndpoint(c.Host, uint32(c.Port))}}},
		},
	}
	if _, err := netip.ParseAddr(c.Host); err == nil {
		m.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
	} else {
		m.ClusterDiscoveryType = dns
	}
	return resource(Clusters, name, m)
}
