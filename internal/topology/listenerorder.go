package topology

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// precedence names a listener of a Gateway that allows ListenerSets or shares a fleet, and orders all
// listeners of that Gateway or fleet.
type precedence struct {
	key ListenerKey
	// created is its set's age, or on a shared fleet its Gateway's; 0 for others of the Gateway's own.
	created int64
	index   int // in what defines it
}

// compare orders listeners of a Gateway: its own first, then those of ListenerSets by age,
// then by name (ListenerSetSpec.Listeners). Those of a shared fleet go by the age of their Gateways,
// then by their names.
func (p precedence) compare(o precedence) int {
	if p == o {
		return 0
	}
	a, b := p.key.Set(), o.key.Set()
	return cmp.Or(
		last(!a.IsZero())-last(!b.IsZero()), p.comparePlace(o),
		cmp.Compare(p.index, o.index), p.key.Compare(o.key),
	)
}

// orderedListener is what a listener of a Gateway that allows ListenerSets asks for.
type orderedListener struct {
	gatewayPort
	bind     uint16
	family   family
	hostname string
	valid    bool
	quic     bool // has HTTP/3 unless the UDP port is another's
	http3    bool // asks for HTTP/3 by its own option
}

// gatewayPort is a port of a Gateway.
type gatewayPort struct {
	Gateway object.Name
	Port    uint16
	UDP     bool
}

func last(b bool) int {
	if b {
		return 1
	}
	return 0
}

// setPort is a port that ListenerSets of a Gateway ask for; optional is as in portRequest.
type setPort struct {
	hostPort
	optional bool
}

func (p setPort) compare(o setPort) int {
	return cmp.Or(p.hostPort.compare(o.hostPort), last(p.optional)-last(o.optional))
}

// gatewaySetPort is one of a Gateway.
type gatewaySetPort struct {
	gateway object.Name
	setPort
}

func (p gatewaySetPort) compare(o gatewaySetPort) int {
	return cmp.Or(p.gateway.Compare(o.gateway), p.setPort.compare(o.setPort))
}

// distinctKey is what the listeners of a Gateway must differ in: the Gateway API calls them
// distinct then. Of those that have one in common, the first is served.
type distinctKey struct {
	gatewayPort
	family   family
	hostname string
}

// boundPort is where the listener is bound.
func (e orderedListener) boundPort() gatewayPort { return gatewayPort{e.Gateway, e.bind, e.UDP} }

func (e orderedListener) distinctKey() distinctKey {
	return distinctKey{e.gatewayPort, e.family, e.hostname}
}

func orderedListenerOf(d *draft) orderedListener {
	return orderedListener{
		gatewayPort: portOf(d.Key.Fleet(), d.Port, d.Protocol),
		bind:        d.BindPort,
		family:      d.family, hostname: d.Hostname, valid: d.valid(),
		quic: d.HTTP3, http3: d.HTTP3 && d.asksHTTP3(),
	}
}

func portOf(gateway object.Name, port uint16, protocol gwv1.ProtocolType) gatewayPort {
	return gatewayPort{gateway, port, protocol == gwv1.UDPProtocolType}
}

// age orders objects by their creation: the older, the less. In files it is known to the
// nanosecond.
func age(created metav1.Time) int64 {
	if created.IsZero() {
		return math.MinInt64 // there from the beginning
	}
	return created.UnixNano()
}

// declareListenerOrder declares the listeners in their order of precedence, and which is
// the first on a port. Gateways that allow no ListenerSets and have a fleet to themselves are left out.
func (g *Graph) declareListenerOrder() {
	own := flow.Map("topology-gateway-listener-order", g.owned,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(precedence, orderedListener)) {
			fleet, created := g.FleetOf(c, name), int64(0)
			switch {
			case fleet != name:
				created = age(gw.CreationTimestamp)
			case gw.Spec.AllowedListeners == nil:
				return
			}
			for i, d := range g.drafts(c, gw, fleet, g.parametersOf(c, name).edge()) {
				if d.family != unserved && !d.Barred {
					emit(precedence{d.Key, created, i}, orderedListenerOf(d))
				}
			}
		}, flow.Equal(flow.Same[orderedListener]))
	ofSets := flow.Map("topology-set-listener-order", g.sets,
		func(_ *flow.Ctx, _ object.Name, s *set, emit func(precedence, orderedListener)) {
			for i, d := range s.listeners {
				if d.family != unserved && !d.Barred {
					emit(precedence{d.Key, age(s.object.CreationTimestamp), i}, orderedListenerOf(d))
				}
			}
		}, flow.Equal(flow.Same[orderedListener]))

	g.byDistinctKey = flow.NewIndex(own, func(_ precedence, e orderedListener, yield func(distinctKey)) { yield(e.distinctKey()) }, precedence.compare)
	g.byDistinctKey.Also(ofSets)

	byPort := flow.NewIndex(own, func(_ precedence, e orderedListener, yield func(gatewayPort)) {
		yield(e.boundPort())
		if e.http3 {
			yield(gatewayPort{e.Gateway, e.bind, true})
		}
	}, precedence.compare)
	byPort.Also(ofSets)
	g.portOwners = flow.Group("topology-port-owners", byPort,
		func(_ *flow.Ctx, _ gatewayPort, members flow.Members[precedence, orderedListener]) (portOwner, bool) {
			first, e := members.At(0)
			return portOwner{first.key, e.Port, e.family}, true
		}, flow.Equal(flow.Same[portOwner]))

	// A Gateway's ListenerSets ask for few ports, however many they are.
	asked := flow.Keys("topology-asked-set-ports", func(p precedence, e orderedListener, yield func(gatewaySetPort)) {
		if !e.valid {
			return
		}
		yield(gatewaySetPort{p.key.Fleet(), setPort{hostPort{e.Port, e.UDP}, false}})
		if e.quic {
			yield(gatewaySetPort{p.key.Fleet(), setPort{hostPort{e.Port, true}, !e.http3}})
		}
	}, ofSets)
	g.gatewaySetPorts = flow.Group("topology-gateway-set-ports",
		flow.NewIndex(asked, func(p gatewaySetPort, _ struct{}, yield func(object.Name)) { yield(p.gateway) }, gatewaySetPort.compare),
		func(_ *flow.Ctx, _ object.Name, members flow.Members[gatewaySetPort, struct{}]) ([]setPort, bool) {
			ports := make([]setPort, 0, members.Len())
			for p := range members.All() {
				ports = append(ports, p.setPort)
			}
			return ports, true
		}, flow.Equal(slices.Equal[[]setPort]))
	g.overlaps = declareOverlaps(own, ofSets)
	g.setPorts = flow.Keys("topology-set-ports",
		func(_ precedence, e orderedListener, yield func(gatewayPort)) { yield(e.gatewayPort) }, ofSets)
}

// portOwner is the listener with precedence where a port is bound: the others must
// be of its port and family.
type portOwner struct {
	key    ListenerKey
	port   uint16
	family family
}

// resolveSetConflicts marks the listeners of a set that are in conflict with others of
// higher precedence. It returns copies.
func (g *Graph) resolveSetConflicts(c *flow.Ctx, s *set) []*draft {
	out := make([]*draft, len(s.listeners))
	for i, shared := range s.listeners {
		d := *shared
		out[i] = &d
		if d.family == unserved || d.Barred {
			continue
		}
		g.resolveConflict(c, &d)
	}
	return out
}

// resolveConflict marks a listener that is in conflict with one of higher precedence.
func (g *Graph) resolveConflict(c *flow.Ctx, d *draft) {
	g.dropHTTP3AtOwner(c, d)
	me := orderedListenerOf(d)
	switch first, ok := flow.Get(c, g.portOwners, me.boundPort()); {
	case ok && first.port != d.Port:
		who := g.ownerText(first.key, d.Key)
		if first.key.Owner() == d.Key.Owner() {
			who = fmt.Sprintf("listener %q", first.key.Name())
		}
		d.refuseBindPort(first.port, who)
		return
	case ok && first.family != d.family:
		d.markConflicted(condition.ListenerProtocolTaken(int(d.Port), string(d.Protocol), g.ownerText(first.key, d.Key)))
		return
	}
	winner := d.Key
	if same := flow.Select(c, g.byDistinctKey, me.distinctKey()); same.Len() > 0 {
		first, _ := same.At(0)
		winner = first.key
	}
	switch {
	case winner == d.Key:
	case !d.family.named():
		d.markConflicted(condition.ListenerWholePortTaken(int(d.Port), string(d.Protocol), g.ownerText(winner, d.Key)))
	default:
		d.markConflicted(condition.ListenerHostnameTaken(int(d.Port), d.Hostname, g.ownerText(winner, d.Key)))
	}
}

// markConflicted records that the listener is in conflict.
func (d *draft) markConflicted(accepted, conflict metav1.Condition) {
	d.refuse(accepted)
	d.conflict = conflict
}

// ownerText names the owner of what a set's listener asks for, or one of a Gateway on a shared fleet.
// Those of other teams are not named.
func (g *Graph) ownerText(winner, loser ListenerKey) string {
	if gw := winner.Gateway(); gw != loser.Gateway() {
		if !g.options.Reader(loser.Gateway().Namespace).Sees(gw.Namespace) {
			return "an older Gateway of another namespace on the same fleet"
		}
		return fmt.Sprintf("listener %q of the older Gateway %s on the same fleet", winner.Name(), gw)
	}
	switch winner.Set() {
	case object.Name{}:
		return "Gateway " + winner.Gateway().String()
	case loser.Set():
		return "listener \"" + winner.Name() + "\" of this ListenerSet"
	default:
		return "another ListenerSet of Gateway " + winner.Gateway().String()
	}
}

// ownedElsewhere reports whether hosts of a pattern that the section covers are
// those of a more specific listener of the port, whoever defines it. It looks only
// for the hostnames that such a listener could have: the pattern, and each wider
// one.
func (g *Graph) ownedElsewhere(c *flow.Ctx, s *section, pattern string) bool {
	at := distinctKey{gatewayPort: portOf(s.key.Fleet(), s.Port, s.Protocol), family: s.family}
	for p := pattern; specificity(p) > specificity(s.Hostname); p = Wider(p) {
		at.hostname = p
		if flow.Select(c, g.byDistinctKey, at).Len() > 0 {
			return true
		}
	}
	return false
}
