package pipeline

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// StatusTable is the statuses of a kind, for all that handles statuses alike: who
// writes them, the times of conditions, the log of what went wrong.
type StatusTable struct {
	Kind object.Kind // none for routes, which are of several kinds
	// Changes yields what a commit has changed, and All what there is.
	Changes func(c *flow.Commit, yield func(StatusChange))
	All     func(c *flow.Ctx, yield func(object.Key, any))
}

// StatusChange is a change of an object's status. Old and New are pointers to
// statuses, and nil where there was or is none.
type StatusChange struct {
	Object   object.Key
	Old, New any
}

// report adds a table to Statuses. keyOf names an entry.
func report[K comparable, S any](p *Pipeline, of object.Kind, t *flow.Derived[K, *S], keyOf func(K) object.Key) {
	flow.Watch(t)
	p.Statuses = append(p.Statuses, StatusTable{
		Kind: of,
		Changes: func(c *flow.Commit, yield func(StatusChange)) {
			for _, ch := range flow.Changes(c, t) {
				change := StatusChange{Object: keyOf(ch.Key)}
				if ch.Had {
					change.Old = ch.Old
				}
				if ch.Has {
					change.New = ch.New
				}
				yield(change)
			}
		},
		All: func(c *flow.Ctx, yield func(object.Key, any)) {
			for k, s := range flow.All(c, t) {
				yield(keyOf(k), s)
			}
		},
	})
}

// declareReported lists the kinds.
func (p *Pipeline) declareReported() {
	report(p, kind.GatewayClass, p.ClassStatus, func(k string) object.Key {
		return object.Key{Kind: kind.GatewayClass, Name: object.Name{Name: k}}
	})
	report(p, kind.Gateway, p.GatewayStatus, keyed(kind.Gateway))
	report(p, kind.ListenerSet, p.ListenerSetStatus, keyed(kind.ListenerSet))
	report(p, kind.BackendTLSPolicy, p.BackendTLSPolicyStatus, keyed(kind.BackendTLSPolicy))
	report(p, kind.BackendTrafficPolicy, p.TrafficPolicyStatus, keyed(kind.BackendTrafficPolicy))
	report(p, kind.XBackend, p.XBackendStatus, keyed(kind.XBackend))
	report(p, object.Kind{}, p.RouteStatus, func(k object.Key) object.Key { return k })
}

// keyed makes keys of a kind.
func keyed(of object.Kind) func(object.Name) object.Key {
	return func(name object.Name) object.Key { return object.Key{Kind: of, Name: name} }
}

// Objects names all objects of the kinds with a status, others' too.
func (p *Pipeline) Objects() []object.Key {
	var out []object.Key
	p.Engine.View(func(c *flow.Ctx) {
		for name := range flow.All(c, p.Inputs.Classes) {
			out = append(out, object.Key{Kind: kind.GatewayClass, Name: object.Name{Name: name}})
		}
		for k := range flow.All(c, p.Inputs.Routes) {
			out = append(out, k)
		}
		each := func(names func(yield func(object.Name) bool), of object.Kind) {
			for name := range names {
				out = append(out, object.Key{Kind: of, Name: name})
			}
		}
		each(keys(c, p.Inputs.Gateways), kind.Gateway)
		each(keys(c, p.Inputs.ListenerSets), kind.ListenerSet)
		each(keys(c, p.Inputs.BackendTLSPolicies), kind.BackendTLSPolicy)
		each(keys(c, p.Inputs.TrafficPolicies), kind.BackendTrafficPolicy)
		each(keys(c, p.Inputs.XBackends), kind.XBackend)
	})
	return out
}

func keys[V any](c *flow.Ctx, t flow.Table[object.Name, V]) func(yield func(object.Name) bool) {
	return func(yield func(object.Name) bool) {
		for name := range flow.All(c, t) {
			if !yield(name) {
				return
			}
		}
	}
}
