package pipeline

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/status"
)

// StatusTable is the statuses of a kind, for all that handles statuses alike: who
// writes them, the times of conditions, the log of what went wrong.
type StatusTable struct {
	Kind object.Kind // none for a table of several kinds
	// Changes yields what a commit has changed, and All what there is.
	Changes func(c *flow.Commit, yield func(StatusChange))
	All     func(c *flow.Ctx, yield func(object.Key, any))
	// Of returns the status of an object; nil where the table has none.
	Of func(c *flow.Ctx, k object.Key) any
}

// StatusChange is a change of an object's status. Old and New are pointers to
// statuses, and nil where there was or is none.
type StatusChange struct {
	Object   object.Key
	Old, New any
}

// Keys are how a table of statuses is keyed.
type Keys[K any] struct {
	Name func(K) object.Key
	In   func(object.Key) K
}

// Namespaced are the keys of the table of a kind whose objects are in namespaces.
func Namespaced(of object.Kind) Keys[object.Name] {
	return Keys[object.Name]{
		func(name object.Name) object.Key { return object.Key{Kind: of, Name: name} },
		func(k object.Key) object.Name { return k.Name },
	}
}

// ClusterScoped are those of a kind whose objects are in none.
func ClusterScoped(of object.Kind) Keys[string] {
	return Keys[string]{
		func(name string) object.Key { return object.Key{Kind: of, Name: object.Name{Name: name}} },
		func(k object.Key) string { return k.Name.Name },
	}
}

// ByKey are those of a table of several kinds.
func ByKey() Keys[object.Key] {
	same := func(k object.Key) object.Key { return k }
	return Keys[object.Key]{same, same}
}

// report adds a table to Statuses, whose values are pointers to statuses.
func report[K comparable, S any](p *Pipeline, of object.Kind, t *flow.Derived[K, S], by Keys[K]) {
	flow.Watch(t)
	p.Statuses = append(p.Statuses, StatusTable{
		Kind: of,
		Changes: func(c *flow.Commit, yield func(StatusChange)) {
			for _, ch := range flow.Changes(c, t) {
				change := StatusChange{Object: by.Name(ch.Key)}
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
				yield(by.Name(k), s)
			}
		},
		Of: func(c *flow.Ctx, k object.Key) any {
			if s, ok := flow.Get(c, t, by.In(k)); ok && by.Name(by.In(k)) == k {
				return s
			}
			return nil
		},
	})
}

// declareReported lists the tables.
func (p *Pipeline) declareReported() {
	report(p, kind.GatewayClass, p.ClassStatus, ClusterScoped(kind.GatewayClass))
	report(p, kind.Gateway, p.GatewayStatus, Namespaced(kind.Gateway))
	report(p, kind.ListenerSet, p.ListenerSetStatus, Namespaced(kind.ListenerSet))
	report(p, kind.BackendTLSPolicy, p.BackendTLSPolicyStatus, Namespaced(kind.BackendTLSPolicy))
	report(p, kind.BackendTrafficPolicy, p.BackendTrafficPolicyStatus, Namespaced(kind.BackendTrafficPolicy))
	report(p, kind.AuthPolicy, p.AuthPolicyStatus, Namespaced(kind.AuthPolicy))
	report(p, kind.RateLimitPolicy, p.RateLimitPolicyStatus, Namespaced(kind.RateLimitPolicy))
	report(p, kind.TrafficPolicy, p.TrafficPolicyStatus, Namespaced(kind.TrafficPolicy))
	report(p, kind.XBackend, p.XBackendStatus, Namespaced(kind.XBackend))
	report(p, kind.InferencePool, p.InferencePoolStatus, Namespaced(kind.InferencePool))
	report(p, kind.RouteFilter, p.RouteFilterStatus, Namespaced(kind.RouteFilter))
	if p.Children != nil {
		report(p, kind.GatewayBlueprint, p.BlueprintStatus, ClusterScoped(kind.GatewayBlueprint))
		report(p, kind.GatewayClassValues, p.ClassValuesStatus, Namespaced(kind.GatewayClassValues))
		report(p, kind.GatewayValues, p.TeamValuesStatus, Namespaced(kind.GatewayValues))
	}
	report(p, object.Kind{}, p.RouteStatus, ByKey())
	report(p, object.Kind{}, p.OtherStatus, ByKey())
}

// declareOtherStatus declares what people are told of objects of kinds that nothing else
// depends on.
func (p *Pipeline) declareOtherStatus() {
	p.OtherStatus = flow.Map("other-status", p.Inputs.Others,
		func(_ *flow.Ctx, k object.Key, o source.Object, emit func(object.Key, any)) {
			if s := status.Other(p.Kinds.StatusOf(k.Kind), o); s != nil {
				emit(k, s)
			}
		})
}

// declareAsked asks for the ConfigMaps that objects are made of.
func (p *Pipeline) declareAsked() {
	if p.Options.ConfigMaps == nil {
		return
	}
	flow.Map("asked-config-maps", p.Inputs.Others,
		func(c *flow.Ctx, _ object.Key, o source.Object, _ func(object.Name, struct{})) {
			for _, name := range p.Options.ConfigMaps(o) {
				flow.Get(c, p.Inputs.ConfigMaps, name)
			}
		}, flow.Equal(flow.Same[struct{}]))
}

// StatusOf returns the status that an object has by the last transaction; nil where it
// has none.
func (p *Pipeline) StatusOf(c *flow.Ctx, k object.Key) any {
	for _, table := range p.Statuses {
		if s := table.Of(c, k); s != nil {
			return s
		}
	}
	return nil
}

// Objects names all objects of the kinds with a status, others' too.
func (p *Pipeline) Objects() []object.Key {
	var out []object.Key
	p.Engine.View(func(c *flow.Ctx) {
		for d := range p.Kinds.Rows() {
			if d.Status != nil {
				p.Inputs.Each(c, d.Kind, func(name object.Name) { out = append(out, object.Key{Kind: d.Kind, Name: name}) })
			}
		}
	})
	return out
}
