package topology

import (
	"fmt"
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
	assigned []Address         // one for each entry that got what it asks for
	outcome  metav1.Condition  // AddressesAssigned
}

// requestedAddresses goes through spec.addresses.
func (g *Graph) requestedAddresses(gw *gwv1.Gateway) addresses {
	if g.options.Provisioned {
		return provisionedAddresses(gw)
	}
	r := addressRequest{
		local:    func(ip string) bool { return g.options.LocalAddresses == nil || g.options.LocalAddresses(ip) },
		defaults: g.options.DefaultAddresses,
		loopback: []string{"127.0.0.1"},
		unmet:    make([]string, len(gw.Spec.Addresses)),
	}
	if g.options.LocalAddresses != nil && g.options.LocalAddresses("::1") {
		r.loopback = append(r.loopback, "::1")
	}
	for i := range gw.Spec.Addresses {
		if refused := r.named(i, &gw.Spec.Addresses[i]); refused != nil {
			return addresses{refused: refused}
		}
	}
	for i := range gw.Spec.Addresses {
		r.unnamed(i, &gw.Spec.Addresses[i])
	}
	a := addresses{usable: r.usable, assigned: r.assigned}
	slices.Sort(a.usable)
	a.usable = slices.Compact(a.usable)
	a.none = len(gw.Spec.Addresses) > 0 && len(a.usable) == 0 && !r.fallback
	a.outcome, a.unusable = r.outcome(a.none, g.options.Experimental, condition.GatewayAddressNotUsable)
	return a
}

// outcome says what has become of the entries, and why that keeps the Gateway from
// being Programmed where it does. none is that no entry has what it asks for.
func (r *addressRequest) outcome(none, experimental bool, notUsable func([]string) metav1.Condition) (outcome metav1.Condition, unusable *metav1.Condition) {
	outcome = condition.GatewayAddressesAssigned()
	unmet := slices.DeleteFunc(r.unmet, func(why string) bool { return why == "" })
	switch {
	case none:
		outcome = condition.GatewayAddressesNotAssigned(unmet)
	case len(unmet) > 0:
		outcome = condition.GatewayAddressesPartiallyAssigned(unmet)
	}
	switch {
	case none && (experimental || len(r.unusable) == 0):
		unusable = new(condition.GatewayAddressNotAssigned(outcome.Message))
	case len(r.unusable) > 0:
		unusable = new(notUsable(r.unusable))
	}
	return outcome, unusable
}

// addressRequest goes through spec.addresses, each entry by itself.
type addressRequest struct {
	local    func(ip string) bool
	defaults []string
	loopback []string // what localhost resolves to

	usable   []string
	assigned []Address
	fallback bool     // an entry asks for any address, and which those are is not known here
	unusable []string // addresses that can't be bound, and why
	unmet    []string // why the entry of that index doesn't get what it asks for
}

// named evaluates an entry with a value. It returns why the Gateway is refused where
// the entry's type is not supported, value or not.
func (r *addressRequest) named(i int, want *gwv1.GatewaySpecAddress) *metav1.Condition {
	kind := valueOr(want.Type, gwv1.IPAddressType)
	switch {
	case kind == gwv1.HostnameAddressType && want.Value == localhost:
		if r.scoped(i, want, netip.IPv6Loopback()) {
			r.usable = append(r.usable, r.loopback...)
			r.assign(want, localhost)
		}
	case kind != gwv1.IPAddressType:
		return new(condition.GatewayUnsupportedAddress(string(kind), want.Value))
	case want.Value != "":
		ip, err := netip.ParseAddr(want.Value)
		if err != nil {
			r.refuse(i, want.Value+" is not an IP address")
			break
		}
		ip = ip.Unmap()
		if !r.local(ip.String()) {
			r.refuse(i, want.Value+" is not an address of this host")
			break
		}
		if r.scoped(i, want, ip) {
			r.usable = append(r.usable, ip.String())
			r.assign(want, ip.String())
		}
	}
	return nil
}

// unnamed assigns to an entry without a value a default address that no other entry has.
func (r *addressRequest) unnamed(i int, want *gwv1.GatewaySpecAddress) {
	if want.Value != "" || !r.known(i, want.Routability) {
		return
	}
	if len(r.defaults) == 0 && meets(netip.Addr{}, want.Routability) {
		r.fallback = true
		return
	}
	candidates := r.defaults
	// Whoever listens on all addresses by default has this one too.
	if want.Routability == RoutabilityLoopback && (slices.Contains(candidates, "0.0.0.0") || slices.Contains(candidates, "::")) {
		candidates = append(slices.Clone(candidates), "127.0.0.1")
	}
	for _, text := range candidates {
		ip, err := netip.ParseAddr(text)
		if err == nil && meets(ip, want.Routability) && !slices.Contains(r.usable, text) {
			r.usable = append(r.usable, text)
			r.assign(want, text)
			return
		}
	}
	r.miss(i, condition.AddressNoneLeft(string(want.Routability), r.defaults))
}

func (r *addressRequest) assign(want *gwv1.GatewaySpecAddress, value string) {
	a := Address{Type: valueOr(want.Type, gwv1.IPAddressType), Value: value, Routability: want.Routability}
	if !slices.Contains(r.assigned, a) {
		r.assigned = append(r.assigned, a)
	}
}

// refuse records an address that can't be bound.
func (r *addressRequest) refuse(i int, why string) {
	r.unusable = append(r.unusable, why)
	r.miss(i, why)
}

// miss records an entry that doesn't get what it asks for.
func (r *addressRequest) miss(i int, why string) {
	r.unmet[i] = fmt.Sprintf("spec.addresses[%d]: %s", i, why)
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
// on the other: equal ones do, and so does the address for all. :: counts
// as taking IPv4 too, as it does on a host with its usual settings.
func overlap(a, b netip.Addr) bool {
	includes := func(all, one netip.Addr) bool {
		return all.IsUnspecified() && (all.Is6() || one.Is4())
	}
	return a == b || includes(a, b) || includes(b, a)
}
