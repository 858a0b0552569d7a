package topology

import (
	"cmp"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// PlaceKey names a policy at a place where what is in force may differ: a listener, an
// attachment of a route, or a rule of one.
type PlaceKey struct {
	Policy   object.Name
	Listener ListenerKey
	Route    object.Key // zero for the routes without policies of their own
	Rule     string     // empty for the rules without policies of their own
	Target   policy.Target
}

// Compare orders places.
func (k PlaceKey) Compare(o PlaceKey) int {
	return cmp.Or(k.Policy.Compare(o.Policy), k.Listener.Compare(o.Listener), k.Route.Compare(o.Route),
		strings.Compare(k.Rule, o.Rule), k.Target.Compare(o.Target))
}

// Outcomes is what became of policies at all places, by policy.
type Outcomes = flow.Index[object.Name, PlaceKey, policy.Outcome]

// outcomes declares what became of policies.
func (in *Inherited[R]) outcomes(name string) *Outcomes {
	told := func(l ListenerKey, route object.Key, rule string, e *policy.Effective[R], emit func(PlaceKey, policy.Outcome)) {
		for _, o := range e.Outcomes() {
			emit(PlaceKey{o.Policy, l, route, rule, o.Target}, o)
		}
	}
	onListener := func(_ *flow.Ctx, k ListenerKey, i *Inheritance[R], emit func(PlaceKey, policy.Outcome)) {
		told(k, object.Key{}, "", i.Effective, emit)
	}
	equal := flow.Equal(policy.Outcome.Equal)
	by := func(k PlaceKey, _ policy.Outcome, yield func(object.Name)) { yield(k.Policy) }
	x := flow.NewIndex(flow.Map(name+"-outcomes-on-listeners", in.Listeners, onListener, equal), by, PlaceKey.Compare)
	x.Also(flow.Map(name+"-outcomes-on-set-listeners", in.SetListeners, onListener, equal))
	x.Also(flow.Map(name+"-outcomes-on-routes", in.Routes,
		func(_ *flow.Ctx, k AttachmentKey, r *RouteInheritance[R], emit func(PlaceKey, policy.Outcome)) {
			told(k.Listener, k.Route, "", r.Effective, emit)
			for _, own := range r.rules {
				told(k.Listener, k.Route, own.name, own.effective, emit)
			}
		}, equal))
	return x
}
