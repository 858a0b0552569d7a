package control

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// reported is a kind of object with a status, for all that handles statuses
// alike: the view, the times of conditions, the log of what went wrong.
type reported struct {
	changes func(c *flow.Commit, yield func(statusChange))
	all     func(c *flow.Ctx, yield func(object.Key, any))
	// items shows the objects, with the statuses that told gives for them in place of
	// those of the table; nil for these.
	items func(c *flow.Ctx, told func(object.Key) any, yield func(Item))
}

// statusChange is a change of an object's status. Old and New are pointers to
// statuses, and nil where there was or is none.
type statusChange struct {
	Object   object.Key
	Old, New any
}

// copied is the pointer to a status, of which a copy can be made.
type copied[S any] interface {
	*S
	DeepCopy() *S
}

// report adds a table of statuses to what is reported. keyOf names an entry, nodes
// have what it is about, and item shows that with a copy of the status, nil where
// there is no object to show.
func report[K comparable, N, S any, P copied[S]](p *Pipeline, t *flow.Derived[K, *S], keyOf func(K) object.Key,
	nodes flow.Table[K, N], item func(*flow.Ctx, N, *S) *Item,
) {
	flow.Watch(t)
	p.reported = append(p.reported, reported{
		changes: func(c *flow.Commit, yield func(statusChange)) {
			for _, ch := range flow.Changes(c, t) {
				change := statusChange{Object: keyOf(ch.Key)}
				if ch.Had {
					change.Old = ch.Old
				}
				if ch.Has {
					change.New = ch.New
				}
				yield(change)
			}
		},
		all: func(c *flow.Ctx, yield func(object.Key, any)) {
			for k, s := range flow.All(c, t) {
				yield(keyOf(k), s)
			}
		},
		items: func(c *flow.Ctx, told func(object.Key) any, yield func(Item)) {
			for k, s := range flow.All(c, t) {
				if told != nil {
					var ok bool
					if s, ok = told(keyOf(k)).(*S); !ok {
						continue
					}
				}
				node, ok := flow.Get(c, nodes, k)
				if !ok {
					continue
				}
				if it := item(c, node, P(s).DeepCopy()); it != nil {
					yield(*it)
				}
			}
		},
	})
}

// declareReported lists the kinds.
func (p *Pipeline) declareReported() {
	of := func(k object.Kind) func(object.Name) object.Key {
		return func(name object.Name) object.Key { return object.Key{Kind: k, Name: name} }
	}
	report(p, p.classStatus, func(k string) object.Key { return object.Key{Kind: kind.GatewayClass, Name: object.Name{Name: k}} }, p.graph.Classes, classItem)
	report(p, p.gatewayStatus, of(kind.Gateway), p.graph.Gateways, p.gatewayItem)
	report(p, p.setStatus, of(kind.ListenerSet), p.graph.ListenerSets, p.setItem)
	report(p, p.policyStatus, of(kind.BackendTLSPolicy), p.graph.BackendTLSPolicies, policyItem)
	report(p, p.trafficStatus, of(kind.BackendTrafficPolicy), p.graph.TrafficPolicies, trafficItem)
	report(p, p.xBackendStatus, of(kind.XBackend), p.graph.XBackends, xBackendItem)
	report(p, p.routeStatus, func(k object.Key) object.Key { return k }, p.graph.Routes, routeItem)
}

// conditionsOf lists a status's conditions by where they stand in it.
func conditionsOf(status any) conditions {
	switch s := status.(type) {
	case *gwv1.GatewayClassStatus:
		return classConditions(s)
	case *gwv1.GatewayStatus:
		return gatewayConditions(s)
	case *gwv1.ListenerSetStatus:
		return setConditions(s)
	case *gwv1.RouteStatus:
		return routeConditions(s)
	case *gwv1.PolicyStatus:
		return policyConditions(s)
	case *gwxv1alpha1.BackendStatus:
		return xBackendConditions(s)
	}
	return nil
}

// summaryOf boils a status down to what a table's row says of it.
func summaryOf(status any) Summary {
	switch s := status.(type) {
	case *gwv1.GatewayClassStatus:
		return classSummary(s)
	case *gwv1.GatewayStatus:
		return gatewaySummary(s)
	case *gwv1.ListenerSetStatus:
		return setSummary(s)
	case *gwv1.RouteStatus:
		return routeSummary(s)
	case *gwv1.PolicyStatus:
		return policySummary(s)
	case *gwxv1alpha1.BackendStatus:
		return xBackendSummary(s)
	}
	return Summary{}
}

// objects names all objects of the kinds with a status, others' too.
func (p *Pipeline) objects() []object.Key {
	var out []object.Key
	p.engine.View(func(c *flow.Ctx) {
		for name := range flow.All(c, p.inputs.Classes) {
			out = append(out, object.Key{Kind: kind.GatewayClass, Name: object.Name{Name: name}})
		}
		for k := range flow.All(c, p.inputs.Routes) {
			out = append(out, k)
		}
		each := func(names func(yield func(object.Name) bool), of object.Kind) {
			for name := range names {
				out = append(out, object.Key{Kind: of, Name: name})
			}
		}
		each(keys(c, p.inputs.Gateways), kind.Gateway)
		each(keys(c, p.inputs.ListenerSets), kind.ListenerSet)
		each(keys(c, p.inputs.BackendTLSPolicies), kind.BackendTLSPolicy)
		each(keys(c, p.inputs.TrafficPolicies), kind.BackendTrafficPolicy)
		each(keys(c, p.inputs.XBackends), kind.XBackend)
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
