package topology

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// localhost is the only host name that a Gateway can listen on: what other names
// resolve to is for a resolver to say, and changes.
const localhost = "localhost"

// addresses is what a Gateway's spec.addresses comes to.
type addresses struct {
	refused  *metav1.Condition // Accepted=False, where a type is not supported
	unusable *metav1.Condition // Programmed=False, where some can't be bound
	usable   []string          // sorted; nil for the default ones
	none     bool              // some were asked for, and none can be used
}

// requestedAddresses goes through spec.addresses.
func requestedAddresses(gw *gwv1.Gateway, local func(string) bool) addresses {
	var a addresses
	var problems []string
	fallback := false // an entry without a value asks for any address
	for _, want := range gw.Spec.Addresses {
		kind := valueOr(want.Type, gwv1.IPAddressType)
		switch {
		case want.Routability != gwv1.GatewayAddressRoutabilityDefault:
			c := condition.GatewayUnsupportedRoutability(want.Value, string(want.Routability))
			return addresses{refused: &c}
		case kind == gwv1.HostnameAddressType && want.Value == localhost:
			a.usable = append(a.usable, "127.0.0.1")
			if local != nil && local("::1") {
				a.usable = append(a.usable, "::1")
			}
		case kind != gwv1.IPAddressType:
			c := condition.GatewayUnsupportedAddress(string(kind), want.Value)
			return addresses{refused: &c}
		case want.Value == "":
			fallback = true
		default:
			ip, err := netip.ParseAddr(want.Value)
			if err != nil {
				problems = append(problems, want.Value+" is not an IP address")
				continue
			}
			text := ip.Unmap().String()
			if local != nil && !local(text) {
				problems = append(problems, want.Value+" is not an address of this host")
				continue
			}
			a.usable = append(a.usable, text)
		}
	}
	if len(problems) > 0 {
		c := condition.GatewayAddressNotUsable(problems)
		a.unusable = &c
	}
	slices.Sort(a.usable)
	a.usable = slices.Compact(a.usable)
	a.none = len(problems) > 0 && len(a.usable) == 0 && !fallback
	if len(a.usable) == 0 {
		a.usable = nil
	}
	return a
}

// effective returns the addresses that the Gateway listens on.
func (a addresses) effective(defaults []string) []netip.Addr {
	texts := a.usable
	if texts == nil && !a.none {
		texts = defaults
	}
	out := make([]netip.Addr, 0, len(texts))
	for _, t := range texts {
		if ip, err := netip.ParseAddr(t); err == nil {
			out = append(out, ip.Unmap())
		}
	}
	return out
}

// overlap reports whether a socket on one address keeps another from the same port
// on the other: equal ones do, and the address for all takes in the rest. :: counts
// as taking IPv4 too, as it does on a host with its usual settings.
func overlap(a, b netip.Addr) bool {
	takes := func(all, one netip.Addr) bool {
		return all.IsUnspecified() && (all.Is6() || one.Is4())
	}
	return a == b || takes(a, b) || takes(b, a)
}
