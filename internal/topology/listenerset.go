package topology

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// listenerSetKind is the kind of sets of listeners, as references name it.
const listenerSetKind = "ListenerSet"

// set is a ListenerSet as far as it and the Gateway that it names decide it,
// other listeners aside.
type set struct {
	object  *gwv1.ListenerSet
	gateway ir.Name
	// refused is the Accepted condition of a set that the Gateway doesn't let in; it
	// has no listeners then.
	refused   *metav1.Condition
	listeners []*draft      // shared: whoever changes one copies it
	parent    *gwv1.Gateway // that the drafts follow from
}

// declareSetParents keeps what of a Gateway its ListenerSets depend on. A status
// that is written into the Gateway leaves it as it is.
func (g *Graph) declareSetParents() flow.Table[ir.Name, *gwv1.Gateway] {
	return flow.Map("topology-set-parents", g.owned,
		func(_ *flow.Ctx, name ir.Name, gw *gwv1.Gateway, emit func(ir.Name, *gwv1.Gateway)) {
			emit(name, &gwv1.Gateway{
				ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
				Spec:       gwv1.GatewaySpec{AllowedListeners: gw.Spec.AllowedListeners, TLS: gw.Spec.TLS},
			})
		}, flow.Equal(func(a, b *gwv1.Gateway) bool { return reflect.DeepEqual(a.Spec, b.Spec) }))
}

// declareSets keeps the ListenerSets that are ours to answer: those of our
// Gateways, and those of Gateways that don't exist where nobody else could know.
func (g *Graph) declareSets() flow.Table[ir.Name, *set] {
	return flow.Map("topology-sets", g.in.ListenerSets,
		func(c *flow.Ctx, name ir.Name, o *gwv1.ListenerSet, emit func(ir.Name, *set)) {
			ref := &o.Spec.ParentRef
			if valueOr(ref.Group, gatewayGroup) != gatewayGroup || valueOr(ref.Kind, gatewayKind) != gatewayKind {
				return
			}
			s := &set{object: o, gateway: ir.Name{
				Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(name.Namespace))),
				Name:      string(ref.Name),
			}}
			gw, ours := flow.Get(c, g.setParents, s.gateway)
			switch {
			case ours:
				s.parent = gw
				if s.refused = g.refusesSet(c, gw, name); s.refused == nil {
					s.listeners = draftSet(gw, name, o.Spec.Listeners, g.options)
				}
			case g.abandoned(c, s.gateway):
				refused := condition.ListenerSetNoGateway(s.gateway.String())
				s.refused = &refused
			default:
				return
			}
			emit(name, s)
		}, flow.Equal((*set).equal))
}

func (s *set) equal(o *set) bool {
	return s.object == o.object && s.gateway == o.gateway && samePointed(s.refused, o.refused) && s.parent == o.parent
}

// refusesSet says why a Gateway doesn't let a ListenerSet in.
func (g *Graph) refusesSet(c *flow.Ctx, gw *gwv1.Gateway, name ir.Name) *metav1.Condition {
	rule := NamespaceRule{From: gwv1.NamespacesFromNone}
	if a := gw.Spec.AllowedListeners; a != nil && a.Namespaces != nil {
		rule.From = valueOr(a.Namespaces.From, gwv1.NamespacesFromNone)
		if rule.From == gwv1.NamespacesFromSelector {
			rule.Selector = labels.Nothing()
			if selector, err := metav1.LabelSelectorAsSelector(a.Namespaces.Selector); err == nil {
				rule.Selector = selector
			}
		}
	}
	if g.allows(c, rule, gw.Namespace, name.Namespace) {
		return nil
	}
	refused := condition.ListenerSetNotAllowed(gw.Namespace+"/"+gw.Name, string(rule.From), name.Namespace)
	return &refused
}

// draftSet judges a ListenerSet's listeners, each by itself.
func draftSet(gw *gwv1.Gateway, name ir.Name, entries []gwv1.ListenerEntry, o Options) []*draft {
	drafts := make([]*draft, len(entries))
	for i := range entries {
		spec := gwv1.Listener(entries[i])
		drafts[i] = draftListener(gw, &spec, o)
		drafts[i].Key.Set = name
	}
	return drafts
}

// entry is a listener's place in the list of all listeners of a Gateway that
// allows ListenerSets. Its order decides who gets what two of them want.
type entry struct {
	gatewayPort
	family   family
	hostname string
	created  int64 // of its set, in seconds since 1970; of no meaning for the Gateway's own
	index    int   // in its set
	valid    bool
	http3    bool // asks for HTTP/3, and so for the UDP port too
}

// gatewayPort is a port of a Gateway.
type gatewayPort struct {
	Gateway ir.Name
	Port    uint16
	UDP     bool
}

func (p gatewayPort) compare(o gatewayPort) int {
	return cmp.Or(p.Gateway.Compare(o.Gateway), cmp.Compare(p.Port, o.Port), udpLast(p.UDP)-udpLast(o.UDP))
}

func udpLast(udp bool) int {
	if udp {
		return 1
	}
	return 0
}

// site is what only one listener can have.
type site struct {
	gatewayPort
	family   family
	hostname string
}

func (e entry) site() site { return site{e.gatewayPort, e.family, e.hostname} }

func entryOf(d *draft, created int64, index int) entry {
	return entry{
		gatewayPort: portOf(d.Key.Gateway, d.Port, d.Protocol),
		family:      d.family, hostname: d.Hostname, created: created, index: index, valid: d.valid(),
		http3: d.HTTP3 && d.asksHTTP3(),
	}
}

func portOf(gateway ir.Name, port uint16, protocol gwv1.ProtocolType) gatewayPort {
	return gatewayPort{gateway, port, protocol == gwv1.UDPProtocolType}
}

// before reports whether a listener goes before another of its Gateway: the
// Gateway's own first, then those of ListenerSets by age, then by name
// (ListenerSetSpec.Listeners).
func before(a ListenerKey, x entry, b ListenerKey, y entry) bool {
	aOwn, bOwn := a.Set == (ir.Name{}), b.Set == (ir.Name{})
	switch {
	case aOwn || bOwn:
		return aOwn && !bOwn
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
		func(_ *flow.Ctx, _ ir.Name, gw *gwv1.Gateway, emit func(ListenerKey, entry)) {
			if gw.Spec.AllowedListeners == nil {
				return
			}
			for i, d := range draftListeners(gw, g.options) {
				if d.family != unserved {
					emit(d.Key, entryOf(d, 0, i))
				}
			}
		}, flow.Equal(flow.Same[entry]))
	ofSets := flow.Map("topology-set-entries", g.sets,
		func(_ *flow.Ctx, _ ir.Name, s *set, emit func(ListenerKey, entry)) {
			for i, d := range s.listeners {
				if d.family != unserved {
					emit(d.Key, entryOf(d, s.object.CreationTimestamp.Unix(), i))
				}
			}
		}, flow.Equal(flow.Same[entry]))

	g.bySite = flow.NewIndex(own, func(_ ListenerKey, e entry, yield func(site)) { yield(e.site()) }, ListenerKey.Compare)
	g.bySite.Also(ofSets)

	byPort := flow.NewIndex(own, func(_ ListenerKey, e entry, yield func(gatewayPort)) {
		yield(e.gatewayPort)
		if e.http3 {
			yield(gatewayPort{e.Gateway, e.Port, true})
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
			return portOwner{first, e.family}, true
		}, flow.Equal(flow.Same[portOwner]))

	g.gatewaySetPorts = flow.Group("topology-gateway-set-ports",
		flow.NewIndex(ofSets, func(k ListenerKey, e entry, yield func(ir.Name)) {
			if e.valid {
				yield(k.Gateway)
			}
		}, ListenerKey.Compare),
		func(_ *flow.Ctx, _ ir.Name, members flow.Members[ListenerKey, entry]) ([]gatewayPort, bool) {
			seen := map[gatewayPort]bool{}
			for _, e := range members.All() {
				seen[e.gatewayPort] = true
			}
			return slices.SortedFunc(maps.Keys(seen), gatewayPort.compare), true
		}, flow.Equal(slices.Equal[[]gatewayPort]))
	g.setPorts = flow.Keys("topology-set-ports",
		func(_ ListenerKey, e entry, yield func(gatewayPort)) { yield(e.gatewayPort) }, ofSets)
}

// portOwner is the listener that goes first on a port: the others must be of its
// family.
type portOwner struct {
	key    ListenerKey
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
		if first, ok := flow.Get(c, g.portOwners, me.gatewayPort); ok && first.family != d.family {
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
	case ir.Name{}:
		return "Gateway " + winner.Gateway.String()
	case loser.Set:
		return "listener \"" + winner.Name + "\" of this ListenerSet"
	default:
		return "another ListenerSet of Gateway " + winner.Gateway.String()
	}
}

// standing is what a Gateway's node means for its ListenerSets.
type standing struct {
	accepted metav1.Condition // without the count of the Gateway's own listeners
	unusable *metav1.Condition
	nowhere  bool // none of the addresses that it asks for can be used
}

func (s standing) equal(o standing) bool {
	return s.accepted == o.accepted && s.nowhere == o.nowhere && samePointed(s.unusable, o.unusable)
}

func (g *Graph) declareStandings() flow.Table[ir.Name, standing] {
	return flow.Map("topology-standings", g.Gateways,
		func(_ *flow.Ctx, name ir.Name, gw *Gateway, emit func(ir.Name, standing)) {
			s := standing{accepted: gw.Accepted, unusable: gw.Unusable}
			if gw.Accepted.Status == metav1.ConditionTrue {
				s.accepted = condition.GatewayAccepted()
			}
			s.nowhere = gw.Nowhere
			emit(name, s)
		}, flow.Equal(standing.equal))
}

func (g *Graph) declareListenerSets() flow.Table[ir.Name, *ListenerSet] {
	return flow.Map("topology-listener-sets", g.sets,
		func(c *flow.Ctx, name ir.Name, s *set, emit func(ir.Name, *ListenerSet)) {
			node := &ListenerSet{Name: name, Object: s.object, Gateway: s.gateway}
			if s.refused != nil {
				node.Accepted = *s.refused
				emit(name, node)
				return
			}
			at, ok := flow.Get(c, g.standings, s.gateway)
			if !ok {
				return
			}
			g.listenerSet(c, node, s, at)
			emit(name, node)
		})
}

// listenerSet judges a set that its Gateway lets in.
func (g *Graph) listenerSet(c *flow.Ctx, node *ListenerSet, s *set, at standing) {
	node.Unusable = at.unusable
	var idle []string
	for _, d := range g.settleSet(c, s) {
		g.claimPort(c, s.gateway, d)
		l := g.listener(c, d)
		node.Listeners = append(node.Listeners, l)
		if !l.Serves {
			idle = append(idle, l.Key.Name)
		}
	}
	switch {
	case at.accepted.Status != metav1.ConditionTrue:
		node.Accepted = condition.ListenerSetParentNotAccepted(s.gateway.String(), at.accepted.Message)
	case len(idle) == len(node.Listeners):
		node.Accepted = condition.ListenerSetNoValidListener(idle)
	case len(idle) > 0:
		node.Accepted = condition.ListenerSetSomeListenersNotValid(idle)
	default:
		node.Accepted = condition.ListenerSetAccepted()
	}
	if at.accepted.Status != metav1.ConditionTrue || at.nowhere {
		for _, l := range node.Listeners {
			l.Serves = false
		}
	}
}

func (g *Graph) declareSetListeners() flow.Table[ListenerKey, *Listener] {
	return flow.Map("topology-set-listeners", g.ListenerSets,
		func(_ *flow.Ctx, _ ir.Name, s *ListenerSet, emit func(ListenerKey, *Listener)) {
			for _, l := range s.Listeners {
				emit(l.Key, l)
			}
		})
}

// declareAttachedSets counts the ListenerSets that Gateways have accepted.
func (g *Graph) declareAttachedSets() flow.Table[ir.Name, int] {
	return flow.Count("topology-attached-sets", g.ListenerSets,
		func(_ ir.Name, s *ListenerSet, yield func(ir.Name)) {
			if s.Accepted.Status == metav1.ConditionTrue {
				yield(s.Gateway)
			}
		})
}

// setSections is a ListenerSet as far as attachment to it depends on it.
type setSections struct {
	gateway ir.Name
	refused string // why the set is not attached to its Gateway; empty where it is
	list    []section
}

func (s *setSections) equal(o *setSections) bool {
	return s.gateway == o.gateway && s.refused == o.refused && slices.EqualFunc(s.list, o.list, section.equal)
}

// declareSetSections keeps the sections of each set by themselves, so that the
// change of one wakes nobody else's routes.
func (g *Graph) declareSetSections() flow.Table[ir.Name, *setSections] {
	return flow.Map("topology-set-sections", g.sets,
		func(c *flow.Ctx, name ir.Name, s *set, emit func(ir.Name, *setSections)) {
			out := &setSections{gateway: s.gateway}
			if s.refused != nil {
				out.refused = s.refused.Message
			}
			for _, d := range g.settleSet(c, s) {
				section := sectionOf(d)
				section.shared = true
				section.contested = g.contested(c, d, parentName{kind: listenerSetKind, name: name})
				out.list = append(out.list, section)
			}
			emit(name, out)
		}, flow.Equal((*setSections).equal))
}

// declareOurSets names the sets that are ours to answer, as declareOurs does the
// Gateways.
func (g *Graph) declareOurSets() flow.Table[ir.Name, struct{}] {
	return flow.Map("topology-our-sets", g.sets,
		func(_ *flow.Ctx, name ir.Name, _ *set, emit func(ir.Name, struct{})) { emit(name, struct{}{}) },
		flow.Equal(flow.Same[struct{}]))
}

// missingSet reports whether a ListenerSet doesn't exist, and no other controller
// could know better.
func (g *Graph) missingSet(c *flow.Ctx, name ir.Name) bool {
	if g.options.ImplicitClass == "" {
		return false
	}
	_, exists := flow.Get(c, g.in.ListenerSets, name)
	return !exists
}

// ownedElsewhere reports whether hosts of a pattern that the section covers are
// those of a more specific listener of the port, whoever defines it. It looks only
// for the hostnames that such a listener could have: the pattern, and each wider
// one.
func (g *Graph) ownedElsewhere(c *flow.Ctx, s *section, pattern string) bool {
	at := site{gatewayPort: gatewayPort{s.key.Gateway, s.port, s.udp}, family: s.family}
	for p := pattern; specificity(p) > specificity(s.hostname); p = Wider(p) {
		at.hostname = p
		if flow.Select(c, g.bySite, at).Len() > 0 {
			return true
		}
	}
	return false
}
