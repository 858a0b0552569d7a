package pipeline

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// socket is an address of this host and a TCP port.
type socket struct {
	address netip.Addr
	port    uint16
}

// binding is a socket that a Gateway asks for, or has.
type binding struct {
	socket
	asking object.Name // the zero Name where the Gateway has it
}

func (b binding) String() string { return b.socket.String() + " of " + b.asking.String() }

func (s socket) String() string { return netip.AddrPortFrom(s.address, s.port).String() }

// declareSockets declares where the listeners of all Gateways are bound, where those who
// write Services may name any address: no backend may be one of them, or requests and
// connections would go round for ever.
//
// Another Gateway's listener is bound once its proxy says so: a backend that is in its place
// goes on serving, and the port is refused. A Gateway's own is taken to be bound until its
// proxy refuses it.
func (p *Pipeline) declareSockets() {
	p.sockets = flow.Keys("bound-sockets",
		func(_ ListenerAddress, b binding, yield func(binding)) {
			yield(b)
		}, p.declareBindings())
}

// declareBindings says of each listener's addresses whether its Gateway has or asks for them.
// Where there are no proxies, all have what they ask for.
func (p *Pipeline) declareBindings() flow.Table[ListenerAddress, binding] {
	return flow.Map("bindings", p.portSettings,
		func(c *flow.Ctx, k PortKey, l *ir.Listener, emit func(ListenerAddress, binding)) {
			if k.UDP || !p.Options.Topology.AnyName {
				return
			}
			said, _ := flow.Get(c, p.proxies, k.Gateway)
			for _, text := range l.Addresses {
				ip, err := netip.ParseAddr(text)
				if err != nil {
					continue
				}
				at, b := ListenerAddress{k.Gateway, l.Name, text}, binding{socket: socket{ip.Unmap(), l.BindPort}}
				if !p.Options.NoProxies && !said.has(at.name()) {
					if said.refuses(at.name()) {
						continue
					}
					b.asking = k.Gateway
				}
				emit(at, b)
			}
		}, flow.Equal(flow.Same[binding]))
}

// has reports whether a proxy has a listener.
func (a *answers) has(listener string) bool { return a != nil && a.acknowledged[listener] }

// refuses reports whether a proxy refuses a listener.
func (a *answers) refuses(listener string) bool {
	if a == nil {
		return false
	}
	_, refused := a.refused[listener]
	return refused
}

// addressesOf are the IP addresses that the listeners of a Gateway are bound to.
func (p *Pipeline) addressesOf(gw *topology.Gateway) []string {
	if len(gw.Addresses) > 0 {
		return gw.Addresses
	}
	return p.Options.Addresses
}

// localSockets are those of the endpoints that are on this host, as far as their
// addresses tell.
func (p *Pipeline) localSockets(endpoints []ir.Endpoint) []socket {
	if !p.Options.Topology.AnyName {
		return nil
	}
	var out []socket
	for _, e := range endpoints {
		if ip, err := netip.ParseAddr(e.Address); err == nil && p.isLocal(ip) {
			out = append(out, socket{ip.Unmap(), e.Port})
		}
	}
	return out
}

func (p *Pipeline) isLocal(ip netip.Addr) bool {
	local := p.Options.Topology.LocalAddresses
	return ip.IsLoopback() || ip.IsUnspecified() || local != nil && local(ip.String())
}

// barred says why the routes of a Gateway may not lead to a backend, some of whose
// endpoints are on this host; nil where they may.
func (p *Pipeline) barred(c *flow.Ctx, k BackendKey, local []socket) *metav1.Condition {
	b := k.Backend.Backend()
	subject := func() string { return b.Object.Kind.Name() + " " + b.Object.Name.String() }
	if b.Outside {
		gw, ok := flow.Get(c, p.Graph.Fleets, k.Gateway)
		if !ok { // it has just gone
			return new(condition.BackendNameNotAllowed(subject(), b.DNS, k.Gateway.String(), ""))
		}
		if gw.AllowsName(b.DNS, b.Use) {
			return nil
		}
		return new(condition.BackendNameNotAllowed(subject(), b.DNS, k.Gateway.String(), gw.Class))
	}
	if host := strings.TrimSuffix(strings.ToLower(b.DNS), "."); p.Options.Topology.AnyName && host != "" {
		port := uint16(b.ConnectPort())
		if host == "localhost" || strings.HasSuffix(host, ".localhost") {
			local = []socket{{netip.AddrFrom4([4]byte{127, 0, 0, 1}), port}, {netip.IPv6Loopback(), port}}
		} else if ip, err := netip.ParseAddr(host); err == nil && p.isLocal(ip) {
			local = []socket{{ip.Unmap(), port}}
		}
	}
	if i := slices.IndexFunc(local, func(s socket) bool { return p.isBound(c, s, k.Gateway) }); i >= 0 {
		return new(condition.BackendLoop(subject(), addressText(b.DNS, local[i])))
	}
	return nil
}

func addressText(host string, s socket) string {
	if host == "" {
		return s.String()
	}
	return host + ":" + strconv.Itoa(int(s.port))
}

// isBound reports whether a listener is where an address of this host leads: of any Gateway,
// or one that the Gateway itself asks for.
func (p *Pipeline) isBound(c *flow.Ctx, s socket, gateway object.Name) bool {
	candidates := []netip.Addr{s.address, netip.IPv6Unspecified()}
	switch {
	case s.address.IsUnspecified(): // which leads to loopback
		candidates = append(candidates, netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback(), netip.IPv4Unspecified())
	case s.address.Is4():
		candidates = append(candidates, netip.IPv4Unspecified())
	}
	return slices.ContainsFunc(candidates, func(a netip.Addr) bool {
		_, bound := flow.Get(c, p.sockets, binding{socket: socket{a, s.port}})
		_, asked := flow.Get(c, p.sockets, binding{socket{a, s.port}, gateway})
		return bound || asked
	})
}

// privateAddresses are the ranges of private addresses that names may resolve to for the
// routes of a Gateway, separated by commas.
func (p *Pipeline) privateAddresses(c *flow.Ctx, gateway object.Name) string {
	gw, ok := flow.Get(c, p.Graph.Fleets, gateway)
	if !ok || gw.Parameters.Backends == nil {
		return ""
	}
	ranges := slices.Clone(gw.Parameters.Backends.PrivateAddresses)
	slices.Sort(ranges)
	return strings.Join(slices.Compact(ranges), ",")
}
