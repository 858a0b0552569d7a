package topology

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// ServiceAddresses are those of the Service in front of a Gateway's proxies. Entries
// are IP addresses, or host names of load balancers.
type ServiceAddresses struct {
	// Addresses are where clients are meant to come in.
	Addresses []string
	// Cluster are the Service's ClusterIPs.
	Cluster []string
}

// Assignment is what a provisioned Gateway has of the addresses that it asks for.
type Assignment struct {
	// Addresses are those of the entries of spec.addresses that have got what they
	// ask for; all that there are where the spec has no entries.
	Addresses []Address
	// Unusable, where set, is why the Gateway can't be Programmed.
	Unusable *metav1.Condition
	// Outcome is the condition AddressesAssigned.
	Outcome metav1.Condition
}

// provisionedAddresses refuses types of addresses that no Service can have. What the
// entries get depends on the Service: see Assign.
func provisionedAddresses(gw *gwv1.Gateway) addresses {
	for i := range gw.Spec.Addresses {
		want := &gw.Spec.Addresses[i]
		if kind := valueOr(want.Type, gwv1.IPAddressType); kind != gwv1.IPAddressType && kind != gwv1.HostnameAddressType {
			return addresses{refused: new(condition.GatewayUnsupportedAddress(string(kind), want.Value))}
		}
	}
	return addresses{}
}

// Assign decides which of the Service's addresses the entries of a provisioned Gateway's
// spec.addresses get.
func (gw *Gateway) Assign(service ServiceAddresses) Assignment {
	entries := gw.Object.Spec.Addresses
	if len(entries) == 0 {
		a := Assignment{Addresses: service.All(), Outcome: condition.GatewayAddressesAssigned()}
		if len(a.Addresses) == 0 {
			a.Outcome = condition.GatewayAddressesNotAssigned([]string{condition.AddressNoneYet()})
		}
		return a
	}
	a := assigning{ServiceAddresses: service, gateway: gw, addressRequest: addressRequest{unmet: make([]string, len(entries))}}
	for i := range entries {
		if entries[i].Value != "" {
			a.named(i, &entries[i])
		}
	}
	for i := range entries {
		if entries[i].Value == "" {
			a.unnamed(i, &entries[i])
		}
	}
	out := Assignment{Addresses: a.assigned}
	out.Outcome, out.Unusable = a.outcome(len(a.assigned) == 0, gw.AddressesAssigned != nil, condition.GatewayAddressNotGiven)
	return out
}

// All returns all addresses, for a Gateway that asks for none in particular.
func (l ServiceAddresses) All() []Address {
	out := make([]Address, len(l.Addresses))
	for i, value := range l.Addresses {
		out[i] = Address{Type: addressType(value), Value: value, Routability: l.routability(value)}
	}
	return out
}

// routability is Cluster for ClusterIPs. From where other addresses can be reached is not
// known.
func (l ServiceAddresses) routability(value string) gwv1.GatewayAddressRoutabilityType {
	if slices.Contains(l.Cluster, value) {
		return gwv1.GatewayAddressRoutabilityCluster
	}
	return gwv1.GatewayAddressRoutabilityDefault
}

func addressType(value string) gwv1.AddressType {
	if _, err := netip.ParseAddr(value); err == nil {
		return gwv1.IPAddressType
	}
	return gwv1.HostnameAddressType
}

// assigning is addressRequest where the addresses are a Service's.
type assigning struct {
	ServiceAddresses
	addressRequest

	gateway *Gateway
}

// pool are the addresses that an entry may have.
func (a *assigning) pool(i int, want *gwv1.GatewaySpecAddress) ([]string, bool) {
	if want.Routability == gwv1.GatewayAddressRoutabilityCluster {
		return a.Cluster, true
	}
	return a.ServiceAddresses.Addresses, a.known(i, want.Routability)
}

// named assigns to an entry with a value, if the Service has that address.
func (a *assigning) named(i int, want *gwv1.GatewaySpecAddress) {
	pool, ok := a.pool(i, want)
	if !ok {
		return
	}
	value := want.Value
	ip, err := netip.ParseAddr(value)
	if err == nil {
		ip = ip.Unmap()
		value = ip.String()
	}
	wanted := valueOr(want.Type, gwv1.IPAddressType)
	switch {
	case wanted == gwv1.IPAddressType && err != nil:
		a.refuse(i, want.Value+" is not an IP address")
	case !slices.Contains(pool, value) && wanted == gwv1.HostnameAddressType:
		a.refuse(i, condition.AddressHostnameNotGiven(want.Value))
	case !slices.Contains(pool, value) && want.Routability != gwv1.GatewayAddressRoutabilityCluster && !a.gateway.mayAsk(ip):
		a.refuse(i, condition.AddressNotAllowed(want.Value, a.gateway.Class))
	case !slices.Contains(pool, value):
		a.refuse(i, condition.AddressNotGiven(want.Value, pool))
	case want.Routability == gwv1.GatewayAddressRoutabilityCluster || a.scoped(i, want, ip):
		a.assign(want, value)
	}
}

// unnamed assigns to an entry without a value an address that no other entry has.
func (a *assigning) unnamed(i int, want *gwv1.GatewaySpecAddress) {
	pool, ok := a.pool(i, want)
	if !ok {
		return
	}
	for _, value := range pool {
		ip, _ := netip.ParseAddr(value)
		fits := want.Routability == gwv1.GatewayAddressRoutabilityCluster || meets(ip, want.Routability)
		assigned := slices.ContainsFunc(a.assigned, func(o Address) bool { return o.Value == value })
		if fits && !assigned && addressType(value) == valueOr(want.Type, gwv1.IPAddressType) {
			a.assign(want, value)
			return
		}
	}
	a.miss(i, condition.AddressNoneGiven(string(valueOr(want.Type, gwv1.IPAddressType)), string(want.Routability), pool))
}
