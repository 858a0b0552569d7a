package topology

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// entry is a listener's place in the list of all listeners of a Gateway that
// allows ListenerSets. Its order decides who gets what two of them want.
type entry struct {
	gatewayPort
	bind     uint16
	family   family
	hostname string
	created  int64 // of its set, in seconds since 1970; of no meaning for the Gateway's own
	index    int   // in its set
	valid    bool
	quic     bool // would have HTTP/3, and so the UDP port too
	http3    bool // asks for it by itself
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

// setPort is a port that ListenerSets of a Gateway want; yields is claim's.
type setPort struct {
	hostPort
	yields bool
}

func (p setPort) compare(o setPort) int {
	return cmp.Or(p.hostPort.compare(o.hostPort), last(p.yields)-last(o.yields))
}

// site is what only one listener can have.
type site struct {
	gatewayPort
	family   family
	hostname string
}

// place is where the listener is bound.
func (e entry) place() gatewayPort { return gatewayPort{e.Gateway, e.bind, e.UDP} }

func (e entry) site() site { return site{e.gatewayPort, e.family, e.hostname} }

func entryOf(d *draft, created int64, index int) entry {
	return entry{
		gatewayPort: portOf(d.Key.Gateway, d.Port, d.Protocol),
		bind:        d.BindPort,
		family:      d.family, hostname: d.Hostname, created: created, index: index, valid: d.valid(),
		quic: d.HTTP3, http3: d.HTTP3 && d.asksHTTP3(),
	}
}

func portOf(gateway object.Name, port uint16, protocol gwv1.ProtocolType) gatewayPort {
	return gatewayPort{gateway, port, protocol == gwv1.UDPProtocolType}
}

// before reports whether a listener goes before another of its Gateway: the
// Gateway's own first, then those of ListenerSets by age, then by name
// (ListenerSetSpec.Listeners).
func before(a ListenerKey, x entry, b ListenerKey, y entry) bool {
	aOwn, bOwn := a.Set == (object.Name{}), b.Set == (object.Name{})
	switch {
	case aOwn != bOwn:
		return aOwn
	case a.Set == b.Set:
		return x.index < y.index
	case x.created != y.created:
		return x.created < y.created
	default:
		return a.Set.Compare(b.Set) < 0
	}
}

// declareEntries declares the lists of listeners, and who goes first on a port.
// Gateways that allow no ListenerSets have no part in it.
func (g *Graph) declareEntries() {
	own := flow.Map("topology-gateway-entries", g.owned,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(ListenerKey, entry)) {
			if gw.Spec.AllowedListeners == nil {
				return
			}
			for i, d := range draftListeners(gw, g.options, g.parametersOf(c, name).edge()) {
				if d.family != unserved {
					emit(d.Key, entryOf(d, 0, i))
				}
			}
		}, flow.Equal(flow.Same[entry]))
	ofSets := flow.Map("topology-set-entries", g.sets,
		func(_ *flow.Ctx, _ object.Name, s *set, emit func(ListenerKey, entry)) {
			for i, d := range s.listeners {
				if d.family != unserved {
					emit(d.Key, entryOf(d, s.object.CreationTimestamp.Unix(), i))
				}
			}
		}, flow.Equal(flow.Same[entry]))

	g.bySite = flow.NewIndex(own, func(_ ListenerKey, e entry, yield func(site)) { yield(e.site()) }, ListenerKey.Compare)
	g.bySite.Also(ofSets)

	byPort := flow.NewIndex(own, func(_ ListenerKey, e entry, yield func(gatewayPort)) {
		yield(e.place())
		if e.http3 {
			yield(gatewayPort{e.Gateway, e.bind, true})
		}
	}, ListenerKey.Compare)
	byPort.Also(ofSets)
	g.portOwners = flow.Group("topology-port-owners", byPort,
		func(_ *flow.Ctx, _ gatewayPort, members flow.Members[ListenerKey, entry]) (portOwner, bool) {
			first, e := members.At(0)
			for k, o := range members.All() {
				if before(k, o, first, e) {
					first, e = k, o
				}
			}
			return portOwner{first, e.Port, e.family}, true
		}, flow.Equal(flow.Same[portOwner]))

	g.gatewaySetPorts = flow.Group("topology-gateway-set-ports",
		flow.NewIndex(ofSets, func(k ListenerKey, e entry, yield func(object.Name)) {
			if e.valid {
				yield(k.Gateway)
			}
		}, ListenerKey.Compare),
		func(_ *flow.Ctx, _ object.Name, members flow.Members[ListenerKey, entry]) ([]setPort, bool) {
			seen := map[setPort]bool{}
			for _, e := range members.All() {
				seen[setPort{hostPort{e.Port, e.UDP}, false}] = true
				if e.quic {
					seen[setPort{hostPort{e.Port, true}, !e.http3}] = true
				}
			}
			return slices.SortedFunc(maps.Keys(seen), setPort.compare), true
		}, flow.Equal(slices.Equal[[]setPort]))
	g.overlaps = declareOverlaps(own, ofSets)
	g.setPorts = flow.Keys("topology-set-ports",
		func(_ ListenerKey, e entry, yield func(gatewayPort)) { yield(e.gatewayPort) }, ofSets)
}

// portOwner is the listener that goes first where a port is bound: the others must
// be of its port and family.
type portOwner struct {
	key    ListenerKey
	port   uint16
	family family
}

// settleSet marks the listeners of a set that lose against those that go before
// them. It returns copies.
func (g *Graph) settleSet(c *flow.Ctx, s *set) []*draft {
	out := make([]*draft, len(s.listeners))
	for i, shared := range s.listeners {
		d := *shared
		out[i] = &d
		if d.family == unserved {
			continue
		}
		g.leaveOwner(c, &d)
		me := entryOf(&d, s.object.CreationTimestamp.Unix(), i)
		switch first, ok := flow.Get(c, g.portOwners, me.place()); {
		case ok && first.port != d.Port:
			d.losePlace(first.key, first.port)
			continue
		case ok && first.family != d.family:
			d.lose(condition.ListenerProtocolTaken(int(d.Port), string(d.Protocol), holder(first.key, d.Key)))
			continue
		}
		winner, best := d.Key, me
		for k, e := range flow.Select(c, g.bySite, me.site()).All() {
			if before(k, e, winner, best) {
				winner, best = k, e
			}
		}
		switch {
		case winner == d.Key:
		case !d.family.named():
			d.lose(condition.ListenerWholePortTaken(int(d.Port), string(d.Protocol), holder(winner, d.Key)))
		default:
			d.lose(condition.ListenerHostnameTaken(int(d.Port), d.Hostname, holder(winner, d.Key)))
		}
	}
	return out
}

// lose notes that the listener is in conflict.
func (d *draft) lose(accepted, conflict metav1.Condition) {
	d.refuse(accepted)
	d.conflict = conflict
}

// holder says who has what a set's listener wants. The names of other teams'
// objects are not for everyone to know.
func holder(winner, loser ListenerKey) string {
	switch winner.Set {
	case object.Name{}:
		return "Gateway " + winner.Gateway.String()
	case loser.Set:
		return "listener \"" + winner.Name + "\" of this ListenerSet"
	default:
		return "another ListenerSet of Gateway " + winner.Gateway.String()
	}
}

// ownedElsewhere reports whether hosts of a pattern that the section covers are
// those of a more specific listener of the port, whoever defines it. It looks only
// for the hostnames that such a listener could have: the pattern, and each wider
// one.
func (g *Graph) ownedElsewhere(c *flow.Ctx, s *section, pattern string) bool {
	at := site{gatewayPort: portOf(s.key.Gateway, s.Port, s.Protocol), family: s.family}
	for p := pattern; specificity(p) > specificity(s.Hostname); p = Wider(p) {
		at.hostname = p
		if flow.Select(c, g.bySite, at).Len() > 0 {
			return true
		}
	}
	return false
}
