package translate

import (
	"cmp"
	"iter"
	"math"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Endpoints gathers a backend's endpoints from its EndpointSlices.
// Ready ones are used; while there are none, those that still serve though they
// are terminating, which is what kube-proxy does too.
func Endpoints[K any](key ir.BackendKey, from iter.Seq2[K, *discoveryv1.EndpointSlice]) []ir.Endpoint {
	b := key.Backend()
	name, transport := b.PortName, transportOf(b.Protocol)
	var ready, draining []ir.Endpoint
	for _, s := range from {
		var in ir.ClusterShare
		if clusters := b.Settings.Clusters; !clusters.IsZero() {
			if in = clusters.Of(s.Labels[mcsv1beta1.LabelSourceCluster]); in.Weight == 0 {
				continue
			}
		}
		for i := range s.Ports {
			if port, ok := portOf(&s.Ports[i], name, transport); ok {
				ready, draining = gather(s, ir.Endpoint{Port: port, Cluster: in}, ready, draining)
			}
		}
	}
	if len(ready) == 0 {
		ready = draining
	}
	return distinct(ready)
}

// AtAddress is a port of an address as the only endpoint of a backend; nil where there is no address.
func AtAddress(address string, port int32) []ir.Endpoint {
	if address == "" || port < 1 || port > math.MaxUint16 {
		return nil
	}
	return []ir.Endpoint{{Address: normal(address), Port: uint16(port)}}
}

// transportOf is what carries a backend's protocol.
func transportOf(p ir.Protocol) corev1.Protocol {
	if p == ir.UDP {
		return corev1.ProtocolUDP
	}
	return corev1.ProtocolTCP
}

// portOf gives the number of a slice's port if it is the one of a name and a transport. A port
// without a number stands for all of them, which routing can't use.
func portOf(p *discoveryv1.EndpointPort, name string, transport corev1.Protocol) (uint16, bool) {
	have := ""
	if p.Name != nil {
		have = *p.Name
	}
	if have != name || p.Port == nil || *p.Port < 1 || *p.Port > math.MaxUint16 {
		return 0, false
	}
	over := corev1.ProtocolTCP
	if p.Protocol != nil {
		over = *p.Protocol
	}
	if over != transport {
		return 0, false
	}
	return uint16(*p.Port), true
}

// gather adds the endpoints of a slice, which are like one but for their addresses.
func gather(s *discoveryv1.EndpointSlice, like ir.Endpoint, ready, draining []ir.Endpoint) (nextReady, nextDraining []ir.Endpoint) {
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		// A condition that nobody has set counts as ready, and serving as ready.
		isReady := isTrue(e.Conditions.Ready, true)
		isDraining := !isReady && isTrue(e.Conditions.Serving, isReady) && isTrue(e.Conditions.Terminating, false)
		if !isReady && !isDraining {
			continue
		}
		for _, address := range e.Addresses {
			ep := like
			ep.Address, ep.Draining = normal(address), isDraining
			if isReady {
				ready = append(ready, ep)
			} else {
				draining = append(draining, ep)
			}
		}
	}
	return ready, draining
}

func isTrue(b *bool, otherwise bool) bool {
	if b == nil {
		return otherwise
	}
	return *b
}

// normal writes an address in its one way, so that equal ones are equal text. What
// is no address stays as it is: whoever can't use it says so.
func normal(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	return ip.Unmap().String()
}

// distinct sorts endpoints and drops repetitions.
func distinct(list []ir.Endpoint) []ir.Endpoint {
	slices.SortFunc(list, func(a, b ir.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Cluster.Name, b.Cluster.Name))
	})
	return slices.Compact(list)
}

// CountEndpoints counts the addresses of a backend in EndpointSlices, and which of them are ready.
func CountEndpoints[K any](key ir.BackendKey, from iter.Seq2[K, *discoveryv1.EndpointSlice]) (ready, all int) {
	b := key.Backend()
	found := map[ir.Endpoint]bool{} // and whether it is ready
	for _, s := range from {
		for i := range s.Ports {
			port, ok := portOf(&s.Ports[i], b.PortName, transportOf(b.Protocol))
			if !ok {
				continue
			}
			for _, e := range s.Endpoints {
				for _, address := range e.Addresses {
					at := ir.Endpoint{Address: normal(address), Port: port}
					found[at] = found[at] || isTrue(e.Conditions.Ready, true)
				}
			}
		}
	}
	for _, is := range found {
		if is {
			ready++
		}
	}
	return ready, len(found)
}
