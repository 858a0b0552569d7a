package topology

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// listenerSetKind is the kind of sets of listeners, as references name it.
const listenerSetKind = "ListenerSet"

// set is a ListenerSet as far as it and the Gateway that it names decide it,
// other listeners aside.
type set struct {
	object  *gwv1.ListenerSet
	gateway object.Name
	// refused is the Accepted condition of a set that the Gateway doesn't allow; it
	// has no listeners then.
	refused   *metav1.Condition
	listeners []*draft           // shared: whoever changes one copies it
	parent    *gwv1.Gateway      // that the drafts follow from
	edge      edge               // and its settings
	may       hostnamePermission // what hostnames they may have
}

// declareSetParents keeps what of a Gateway its ListenerSets depend on. A status
// that is written into the Gateway doesn't change it.
func (g *Graph) declareSetParents() flow.Table[object.Name, *gwv1.Gateway] {
	return flow.Map("topology-set-parents", g.owned,
		func(_ *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(object.Name, *gwv1.Gateway)) {
			emit(name, &gwv1.Gateway{
				ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
				Spec:       gwv1.GatewaySpec{AllowedListeners: gw.Spec.AllowedListeners, TLS: gw.Spec.TLS},
			})
		}, flow.Equal(func(a, b *gwv1.Gateway) bool { return reflect.DeepEqual(a.Spec, b.Spec) }))
}

// ParentOfSet returns the Gateway that a ListenerSet names.
func ParentOfSet(o *gwv1.ListenerSet) object.Name {
	ref := &o.Spec.ParentRef
	return object.Name{Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(o.Namespace))), Name: string(ref.Name)}
}

// declareSets keeps the ListenerSets that are ours to answer: those of our
// Gateways, and those of Gateways that don't exist where no other controller could
// answer.
func (g *Graph) declareSets() flow.Table[object.Name, *set] {
	return flow.Map("topology-sets", g.in.ListenerSets,
		func(c *flow.Ctx, name object.Name, o *gwv1.ListenerSet, emit func(object.Name, *set)) {
			if !ofGateway(o) {
				return
			}
			s := &set{object: o, gateway: ParentOfSet(o)}
			gw, ours := flow.Get(c, g.setParents, s.gateway)
			switch {
			case ours:
				s.parent = gw
				if s.refused = g.refusesSet(c, gw, name); s.refused == nil {
					s.edge = g.parametersOf(c, s.gateway).edge()
					s.listeners = draftSet(gw, name, o.Spec.Listeners, g.options, s.edge)
					rules, _ := flow.Get(c, g.hostnameRules, s.gateway)
					s.may = g.hostnamesFor(c, rules, s.gateway, name.Namespace)
					for _, d := range s.listeners {
						d.bar(s.may)
					}
				}
			case g.missingGateway(c, s.gateway):
				refused := condition.ListenerSetNoGateway(g.missing(c, object.Key{Kind: kind.Gateway, Name: s.gateway}, nil))
				s.refused = &refused
			default:
				return
			}
			emit(name, s)
		}, flow.Equal((*set).equal))
}

// OrphanSet is a ListenerSet of a Gateway that is not known.
type OrphanSet struct {
	Gateway    object.Name
	Generation int64 // of the set
}

// declareOrphanSets keeps the ListenerSets of Gateways that are not known where several
// controllers share the objects. Their specs don't tell whose they are.
func (g *Graph) declareOrphanSets() flow.Table[object.Name, OrphanSet] {
	return flow.Map("topology-orphan-sets", g.in.ListenerSets,
		func(c *flow.Ctx, name object.Name, o *gwv1.ListenerSet, emit func(object.Name, OrphanSet)) {
			gateway := ParentOfSet(o)
			if g.options.ImplicitClass != "" || !ofGateway(o) {
				return
			}
			if _, exists := flow.Get(c, g.in.Gateways, gateway); !exists {
				emit(name, OrphanSet{Gateway: gateway, Generation: o.Generation})
			}
		}, flow.Equal(flow.Same[OrphanSet]))
}

// ofGateway reports whether a ListenerSet names a Gateway, and not an object of a kind
// that this version doesn't know.
func ofGateway(o *gwv1.ListenerSet) bool {
	ref := &o.Spec.ParentRef
	return valueOr(ref.Group, gatewayGroup) == gatewayGroup && valueOr(ref.Kind, gatewayKind) == gatewayKind
}

func (s *set) equal(o *set) bool {
	return s.object == o.object && s.gateway == o.gateway && ptr.Equal(s.refused, o.refused) && s.parent == o.parent && s.edge == o.edge && s.may.equal(o.may)
}

// refusesSet says why a Gateway doesn't allow a ListenerSet; nil where it does.
func (g *Graph) refusesSet(c *flow.Ctx, gw *gwv1.Gateway, name object.Name) *metav1.Condition {
	rule := NamespaceRule{From: gwv1.NamespacesFromNone}
	if a := gw.Spec.AllowedListeners; a != nil && a.Namespaces != nil {
		rule.From = valueOr(a.Namespaces.From, gwv1.NamespacesFromNone)
		if rule.From == gwv1.NamespacesFromSelector {
			rule.Selector = selectorOf(a.Namespaces.Selector)
		}
	}
	if !g.allows(c, rule, gw.Namespace, name.Namespace) {
		return new(condition.ListenerSetNotAllowed(gw.Namespace+"/"+gw.Name, string(rule.From), name.Namespace))
	}
	if over, ok := flow.Get(c, g.setsOverQuota, name); ok {
		return &over
	}
	return nil
}

// draftSet drafts a ListenerSet's listeners, each by itself.
func draftSet(gw *gwv1.Gateway, name object.Name, entries []gwv1.ListenerEntry, o Options, e edge) []*draft {
	drafts := make([]*draft, len(entries))
	for i := range entries {
		spec := gwv1.Listener(entries[i])
		drafts[i] = draftListener(gw, &spec, o, e)
		drafts[i].Key = ListenerOf(drafts[i].Key.Gateway(), name, drafts[i].Key.Name())
	}
	return drafts
}

// setParentState is what ListenerSets depend on of their Gateway's node.
type setParentState struct {
	accepted  metav1.Condition // without the count of the Gateway's own listeners
	unusable  *metav1.Condition
	noAddress bool // none of the addresses that it asks for can be used
}

func (s setParentState) equal(o setParentState) bool {
	return s.accepted == o.accepted && s.noAddress == o.noAddress && ptr.Equal(s.unusable, o.unusable)
}

func (g *Graph) declareSetParentStates() flow.Table[object.Name, setParentState] {
	return flow.Map("topology-set-parent-states", g.Gateways,
		func(_ *flow.Ctx, name object.Name, gw *Gateway, emit func(object.Name, setParentState)) {
			s := setParentState{accepted: gw.Accepted, unusable: gw.Unusable}
			if gw.Served() {
				s.accepted = condition.GatewayAccepted()
			}
			s.noAddress = gw.NoAddress
			emit(name, s)
		}, flow.Equal(setParentState.equal))
}

func (g *Graph) declareListenerSets() flow.Table[object.Name, *ListenerSet] {
	return flow.Map("topology-listener-sets", g.sets,
		func(c *flow.Ctx, name object.Name, s *set, emit func(object.Name, *ListenerSet)) {
			node := &ListenerSet{Name: name, Object: s.object, Gateway: s.gateway}
			if s.refused != nil {
				node.Accepted = *s.refused
				emit(name, node)
				return
			}
			at, ok := flow.Get(c, g.setParentStates, s.gateway)
			if !ok {
				return
			}
			g.listenerSet(c, node, s, at)
			emit(name, node)
		})
}

// listenerSet makes the node of a set that its Gateway allows.
func (g *Graph) listenerSet(c *flow.Ctx, node *ListenerSet, s *set, at setParentState) {
	node.Unusable = at.unusable
	var idle []string
	drafts := g.resolveSetConflicts(c, s)
	for _, d := range drafts {
		g.refuseSharedPort(c, s.gateway, d)
	}
	g.findSetOverlaps(c, s, drafts)
	for _, d := range drafts {
		l := g.listener(c, d)
		node.Listeners = append(node.Listeners, l)
		if !l.Serves {
			idle = append(idle, l.Key.Name())
		}
	}
	switch {
	case at.accepted.Status != metav1.ConditionTrue:
		why := g.options.Reader(node.Name.Namespace).Why(s.gateway.Namespace, at.accepted.Message)
		node.Accepted = condition.ListenerSetParentNotAccepted(s.gateway.String(), why)
	case len(idle) == len(node.Listeners):
		node.Accepted = condition.ListenerSetNoValidListener(idle)
	case len(idle) > 0:
		node.Accepted = condition.ListenerSetSomeListenersNotValid(idle)
	default:
		node.Accepted = condition.ListenerSetAccepted()
	}
	if at.accepted.Status != metav1.ConditionTrue || at.noAddress {
		for _, l := range node.Listeners {
			l.Serves = false
		}
	}
}

func (g *Graph) declareSetListeners() flow.Table[ListenerKey, *Listener] {
	return flow.Map("topology-set-listeners", g.ListenerSets,
		func(_ *flow.Ctx, _ object.Name, s *ListenerSet, emit func(ListenerKey, *Listener)) {
			for _, l := range s.Listeners {
				emit(l.Key, l)
			}
		})
}

// declareAttachedSets counts the ListenerSets that Gateways have accepted.
func (g *Graph) declareAttachedSets() flow.Table[object.Name, int] {
	return flow.Count("topology-attached-sets", g.ListenerSets,
		func(_ object.Name, s *ListenerSet, yield func(object.Name)) {
			if s.Accepted.Status == metav1.ConditionTrue {
				yield(s.Gateway)
			}
		})
}

// setSections is a ListenerSet as far as attachment to it depends on it.
type setSections struct {
	gateway object.Name
	refused string // why the set is not attached to its Gateway; empty where it is
	list    []section
}

func (s *setSections) equal(o *setSections) bool {
	return s.gateway == o.gateway && s.refused == o.refused && slices.EqualFunc(s.list, o.list, section.equal)
}

// declareSetSections keeps the sections of each set by themselves, so that the
// change of one makes no other set's routes compute anything.
func (g *Graph) declareSetSections() flow.Table[object.Name, *setSections] {
	return flow.Map("topology-set-sections", g.sets,
		func(c *flow.Ctx, name object.Name, s *set, emit func(object.Name, *setSections)) {
			out := &setSections{gateway: s.gateway}
			if s.refused != nil {
				out.refused = s.refused.Message
			}
			rules, _ := flow.Get(c, g.hostnameRules, s.gateway)
			for _, d := range g.resolveSetConflicts(c, s) {
				section := sectionOf(d)
				section.names = rules
				section.shared = true
				out.list = append(out.list, section)
			}
			emit(name, out)
		}, flow.Equal((*setSections).equal))
}

// declareOurSets names the sets that are ours to answer, as declareOurs does the
// Gateways.
func (g *Graph) declareOurSets() flow.Table[object.Name, struct{}] {
	return flow.Map("topology-our-sets", g.sets,
		func(_ *flow.Ctx, name object.Name, _ *set, emit func(object.Name, struct{})) { emit(name, struct{}{}) },
		flow.Equal(flow.Same[struct{}]))
}

// missingSet reports whether a ListenerSet doesn't exist, and no other controller shares
// the objects: the answer is ours then.
func (g *Graph) missingSet(c *flow.Ctx, name object.Name) bool {
	if g.options.ImplicitClass == "" {
		return false
	}
	_, exists := flow.Get(c, g.in.ListenerSets, name)
	return !exists
}
