package envoy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// AddressError names the addresses of a backend's endpoints that Envoy can't be
// given, because they are no IP addresses.
type AddressError struct {
	Backend   string
	Addresses []string
}

// Error names the backend and its addresses.
func (e *AddressError) Error() string {
	return fmt.Sprintf("backend %s: these endpoints are no IP addresses, use a Service of type ExternalName for a host name: %s",
		e.Backend, strings.Join(e.Addresses, ", "))
}

// LoadAssignment returns the endpoints of a cluster. Addresses that Envoy would refuse
// are left out and reported by an AddressError; the resource is whole without
// them. It is nil only where there is no name to send it under.
func LoadAssignment(cluster string, endpoints []ir.Endpoint) (*Resource, error) {
	var odd []string
	groups := map[endpointGroup][]*endpointv3.LbEndpoint{}
	for _, ep := range endpoints {
		if ip, err := netip.ParseAddr(ep.Address); err != nil || ip.Zone() != "" {
			odd = append(odd, ep.Address)
			continue
		}
		lb := lbEndpoint(ep.Address, uint32(ep.Port))
		if ep.Weight > 0 {
			lb.LoadBalancingWeight = wrapperspb.UInt32(ep.Weight)
		}
		in := endpointGroup{ep.Draining, ep.Cluster}
		groups[in] = append(groups[in], lb)
	}
	m := &endpointv3.ClusterLoadAssignment{ClusterName: cluster}
	// Priorities start at 0 and leave none out. Envoy turns to the next one
	// when the one before has nobody.
	var before endpointGroup
	priority := uint32(0)
	for _, in := range slices.SortedFunc(maps.Keys(groups), endpointGroup.compare) {
		if m.Endpoints != nil && in.comesAfter(before) {
			priority++
		}
		before = in
		locality := &endpointv3.LocalityLbEndpoints{LbEndpoints: groups[in], Priority: priority}
		if in.cluster.Weight > 0 {
			locality.Locality = &corev3.Locality{Region: in.cluster.Name}
			locality.LoadBalancingWeight = wrapperspb.UInt32(in.cluster.Weight)
		}
		m.Endpoints = append(m.Endpoints, locality)
	}
	r, err := resource(Endpoints, cluster, m)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", cluster, err)
	}
	if len(odd) > 0 {
		return r, &AddressError{Backend: cluster, Addresses: odd}
	}
	return r, nil
}

// endpointGroup is what endpoints have in common that Envoy is told of together.
type endpointGroup struct {
	draining bool
	cluster  ir.ClusterShare
}

// compare orders groups by when they get requests.
func (g endpointGroup) compare(o endpointGroup) int {
	return cmp.Or(cmp.Compare(g.rank(), o.rank()), cmp.Compare(g.cluster.Name, o.cluster.Name))
}

// comesAfter reports whether a group gets requests only when another one can't.
func (g endpointGroup) comesAfter(o endpointGroup) bool { return g.rank() > o.rank() }

// rank is lower for those who get requests before others: whoever is draining comes last.
func (g endpointGroup) rank() uint64 {
	rank := uint64(g.cluster.Priority)
	if g.draining {
		rank += 1 << 32
	}
	return rank
}

// EmptyEndpoints answers a subscription to the endpoints of a cluster that has
// none: requests get 503. Envoy ignores the removal of endpoints, and holds up
// a new cluster for 15 s where they don't come.
func EmptyEndpoints(cluster string) *Resource {
	r, _ := LoadAssignment(cluster, nil)
	return r
}

func lbEndpoint(host string, port uint32) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address:       host,
			PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
		}}},
	}}}
}
