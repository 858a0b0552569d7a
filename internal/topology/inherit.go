package topology

import (
	"iter"
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// Inherited is what the policies of a kind say together on every path from a GatewayClass
// to a rule. It is held where paths differ: for each listener, and for each attachment of
// a route with policies of its own. A Gateway's policy is one value over thousands of
// routes without any.
type Inherited[R policy.Asks[R]] struct {
	// Listeners and SetListeners hold what routes without policies of their own inherit, for
	// listeners with policies above them or of their own.
	Listeners, SetListeners flow.Table[ListenerKey, *Inheritance[R]]
	// Routes are the attachments of routes that have policies of their own, whole or for
	// some rules.
	Routes flow.Table[AttachmentKey, *RouteInheritance[R]]

	// Services are the ends of paths at Services with policies of their own. Nil for kinds that have none there.
	Services flow.Table[ServicePlace, *policy.Effective[R]]

	// Outcomes is what became of each policy, and where.
	Outcomes *Outcomes

	gateways flow.Table[object.Name, inheritance[R]]
}

// Asks is what the rules of inherited policies are.
type Asks[R any] = policy.Asks[R]

// Effective is what inherited policies whose rules are R say together.
type Effective[R Asks[R]] = policy.Effective[R]

// inheritance are the policies down to a place, the most established one first.
type inheritance[R policy.Asks[R]] []policy.Placed[R]

// Equal reports whether the same policies say the same.
func (a inheritance[R]) Equal(b inheritance[R]) bool {
	return slices.EqualFunc(a, b, policy.Placed[R].Equal)
}

// on returns the inheritance with what policies say to a section of an object, or to the
// whole of it.
func (a inheritance[R]) on(all *policy.Attached[policy.Rules[R]], of object.Key, section string) inheritance[R] {
	said := all.At(section)
	if len(said) == 0 {
		return a
	}
	out := slices.Clip(a)
	for _, s := range said {
		out = append(out, policy.Placed[R]{Said: s, Target: policy.Target{Key: of, Section: section}})
	}
	return out
}

// Inheritance is what a listener's routes inherit.
type Inheritance[R policy.Asks[R]] struct {
	Effective   *policy.Effective[R]
	path        inheritance[R]
	sharesFleet bool // with other Gateways than its own
}

// Equal reports whether the same policies say the same.
func (i *Inheritance[R]) Equal(o *Inheritance[R]) bool {
	return i.sharesFleet == o.sharesFleet && i.path.Equal(o.path)
}

// HasOwn reports whether some of it is of policies of the listener or of its ListenerSet, and not
// only of those that all listeners of the fleet have above them.
func (i *Inheritance[R]) HasOwn() bool {
	lowest := i.path[len(i.path)-1].Target
	return lowest.Section != "" || lowest.Key.Kind == kind.ListenerSet || i.sharesFleet && lowest.Key.Kind == kind.Gateway
}

// RouteInheritance is what is in force for a route on a listener.
type RouteInheritance[R policy.Asks[R]] struct {
	// Effective is for the rules without policies of their own.
	Effective *policy.Effective[R]
	rules     []ruleInheritance[R] // of the others, sorted by name
}

type ruleInheritance[R policy.Asks[R]] struct {
	name      string
	effective *policy.Effective[R]
}

// Equal reports whether the same is in force for the same rules.
func (r *RouteInheritance[R]) Equal(o *RouteInheritance[R]) bool {
	return same(r.Effective, o.Effective) && slices.EqualFunc(r.rules, o.rules, func(a, b ruleInheritance[R]) bool {
		return a.name == b.name && same(a.effective, b.effective)
	})
}

// Rules yields what is in force for the rules with policies of their own, by their names.
func (r *RouteInheritance[R]) Rules() iter.Seq2[string, *policy.Effective[R]] {
	return func(yield func(string, *policy.Effective[R]) bool) {
		for _, own := range r.rules {
			if !yield(own.name, own.effective) {
				return
			}
		}
	}
}

// Each yields what is in force for the rules of the route.
func (r *RouteInheritance[R]) Each(yield func(*policy.Effective[R])) {
	yield(r.Effective)
	for _, own := range r.rules {
		yield(own.effective)
	}
}

func same[R policy.Asks[R]](a, b *policy.Effective[R]) bool {
	return a == b || a != nil && b != nil && a.Equal(b)
}

// On returns what is in force for a rule of the route, by the rule's name.
func (r *RouteInheritance[R]) On(rule string) *policy.Effective[R] {
	if rule != "" {
		for _, own := range r.rules {
			if own.name == rule {
				return own.effective
			}
		}
	}
	return r.Effective
}

// Inherit declares what the policies of a kind say together. The names of its tables begin
// with name. It is called once the graph is declared.
func Inherit[P any, R policy.Asks[R]](g *Graph, name string, a *policy.Attachments[P, policy.Rules[R]]) *Inherited[R] {
	in := &Inherited[R]{}
	in.gateways = flow.Map(name+"-of-gateways", g.owned,
		func(c *flow.Ctx, key object.Name, gw *gwv1.Gateway, emit func(object.Name, inheritance[R])) {
			class, ok := g.class(c, gw)
			if !ok {
				return
			}
			var path inheritance[R]
			for _, of := range [...]object.Key{
				{Kind: kind.GatewayClass, Name: object.Name{Name: class.Name}}, {Kind: kind.Gateway, Name: key},
			} {
				path = path.on(a.On(c, of), of, "")
			}
			if path != nil {
				emit(key, path)
			}
		})
	listeners := func(c *flow.Ctx, key ListenerKey, _ *Listener, emit func(ListenerKey, *Inheritance[R])) {
		path, _ := flow.Get(c, in.gateways, key.Gateway())
		owner := key.Owner()
		own := a.On(c, owner)
		if owner.Kind == kind.ListenerSet {
			path = path.on(own, owner, "")
		}
		if path = path.on(own, owner, key.Name()); path != nil {
			emit(key, &Inheritance[R]{policy.Combine(path), path, key.Fleet() != key.Gateway()})
		}
	}
	in.Listeners = flow.Map(name+"-of-listeners", g.Listeners, listeners)
	in.SetListeners = flow.Map(name+"-of-set-listeners", g.SetListeners, listeners)
	in.Routes = flow.Map(name+"-of-routes", a.Targets(),
		func(c *flow.Ctx, key object.Key, _ struct{}, emit func(AttachmentKey, *RouteInheritance[R])) {
			if !g.isRoute(key.Kind) {
				return
			}
			own := a.On(c, key)
			parents := g.Parents(c, key)
			for i, p := range parents {
				for _, at := range p.attached {
					if !attachedBefore(parents[:i], at.Key) {
						emit(at.Key, routeInheritance(in.above(c, at.Key.Listener), own, key))
					}
				}
			}
		})
	in.Outcomes = in.outcomes(name)
	return in
}

// isRoute reports whether objects of a kind are routes.
func (g *Graph) isRoute(of object.Kind) bool {
	d := g.in.kinds.Of(of)
	return d != nil && d.Family == kind.Route
}

// routeInheritance combines what a route inherits with what its own policies say.
func routeInheritance[R policy.Asks[R]](above inheritance[R], own *policy.Attached[policy.Rules[R]], route object.Key) *RouteInheritance[R] {
	path := above.on(own, route, "")
	out := &RouteInheritance[R]{Effective: policy.Combine(path)}
	for rule := range own.Sections() {
		if rule != "" {
			out.rules = append(out.rules, ruleInheritance[R]{rule, policy.Combine(path.on(own, route, rule))})
		}
	}
	slices.SortFunc(out.rules, func(a, b ruleInheritance[R]) int { return strings.Compare(a.name, b.name) })
	return out
}

func (in *Inherited[R]) above(c *flow.Ctx, l ListenerKey) inheritance[R] {
	if i := in.OnListener(c, l); i != nil {
		return i.path
	}
	return nil
}

// OnListener returns what the routes of a listener inherit; nil for nothing.
func (in *Inherited[R]) OnListener(c *flow.Ctx, l ListenerKey) *Inheritance[R] {
	i, _ := flow.Get(c, TableOf(l, in.Listeners, in.SetListeners), l)
	return i
}

// On returns what is in force for a rule of a route on a listener, by the rule's name; nil
// for nothing.
func (in *Inherited[R]) On(c *flow.Ctx, k AttachmentKey, rule string) *policy.Effective[R] {
	if own, ok := flow.Get(c, in.Routes, k); ok {
		return own.On(rule)
	}
	if i := in.OnListener(c, k.Listener); i != nil {
		return i.Effective
	}
	return nil
}
