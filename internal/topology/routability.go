package topology

import (
	"net/netip"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// The routabilities of our own: from where an address can be reached as far as the
// address itself tells. The API defines only Cluster, which is for the ClusterIPs
// of Services (GEP-5093).
const (
	RoutabilityLoopback gwv1.GatewayAddressRoutabilityType = "gatehouse.dev/Loopback" // this host
	RoutabilityPrivate  gwv1.GatewayAddressRoutabilityType = "gatehouse.dev/Private"  // a private network
	RoutabilityPublic   gwv1.GatewayAddressRoutabilityType = "gatehouse.dev/Public"   // the Internet
)

// routabilitySentinel promises nothing. The API has it for testing whether requests
// are understood.
const routabilitySentinel gwv1.GatewayAddressRoutabilityType = "testing.x-k8s.io/sentinel"

// shared is the range of RFC 6598, behind the NAT of a provider.
var shared = netip.MustParsePrefix("100.64.0.0/10")

// routabilityOf returns from where an address can be reached. No address, and the one
// for all of a host's addresses, are of no kind.
func routabilityOf(ip netip.Addr) gwv1.GatewayAddressRoutabilityType {
	switch {
	case !ip.IsValid(), ip.IsUnspecified(), ip.IsMulticast():
		return gwv1.GatewayAddressRoutabilityDefault
	case ip.IsLoopback():
		return RoutabilityLoopback
	case ip.IsPrivate(), ip.IsLinkLocalUnicast(), shared.Contains(ip):
		return RoutabilityPrivate
	default:
		return RoutabilityPublic
	}
}

// meets reports whether an address is what a known routability asks for.
func meets(ip netip.Addr, want gwv1.GatewayAddressRoutabilityType) bool {
	return want == gwv1.GatewayAddressRoutabilityDefault || want == routabilitySentinel || want == routabilityOf(ip)
}

// known reports whether an entry asks for a routability that there is, and records a
// miss where there is no such one.
func (r *addressRequest) known(i int, want gwv1.GatewayAddressRoutabilityType) bool {
	switch want {
	case gwv1.GatewayAddressRoutabilityDefault, routabilitySentinel, RoutabilityLoopback, RoutabilityPrivate, RoutabilityPublic:
		return true
	case gwv1.GatewayAddressRoutabilityCluster:
		r.miss(i, condition.AddressNoClusterIP())
	default:
		r.miss(i, condition.AddressUnknownRoutability(string(want)))
	}
	return false
}

// scoped reports whether an entry may have the address that it names, and records
// a miss where it asks for another routability.
func (r *addressRequest) scoped(i int, want *gwv1.GatewaySpecAddress, ip netip.Addr) bool {
	if !r.known(i, want.Routability) {
		return false
	}
	if !meets(ip, want.Routability) {
		r.miss(i, condition.AddressOtherRoutability(want.Value, string(want.Routability), string(routabilityOf(ip))))
		return false
	}
	return true
}
