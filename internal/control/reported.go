package control

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// reported is a kind of object with a status, for all that handles statuses
// alike: the view, the times of conditions, the log of what went wrong.
type reported struct {
	changes func(c *flow.Commit, yield func(statusChange))
	all     func(c *flow.Ctx, yield func(source.Key, any))
	// items shows the objects, with the statuses that told gives for them in place of
	// those of the table; nil for these.
	items func(c *flow.Ctx, told func(source.Key) any, yield func(Item))
}

// statusChange is a change of an object's status. Old and New are pointers to
// statuses, and nil where there was or is none.
type statusChange struct {
	Object   source.Key
	Old, New any
}

// report adds a table of statuses to what is reported. object names an entry, and
// item is nil where there is no object to show.
func report[K comparable, S any](p *Pipeline, t *flow.Derived[K, *S], object func(K) source.Key, item func(*flow.Ctx, K, *S) *Item) {
	flow.Watch(t)
	p.reported = append(p.reported, reported{
		changes: func(c *flow.Commit, yield func(statusChange)) {
			for _, ch := range flow.Changes(c, t) {
				change := statusChange{Object: object(ch.Key)}
				if ch.Had {
					change.Old = ch.Old
				}
				if ch.Has {
					change.New = ch.New
				}
				yield(change)
			}
		},
		all: func(c *flow.Ctx, yield func(source.Key, any)) {
			for k, s := range flow.All(c, t) {
				yield(object(k), s)
			}
		},
		items: func(c *flow.Ctx, told func(source.Key) any, yield func(Item)) {
			for k, s := range flow.All(c, t) {
				if told != nil {
					var ok bool
					if s, ok = told(object(k)).(*S); !ok {
						continue
					}
				}
				if it := item(c, k, s); it != nil {
					yield(*it)
				}
			}
		},
	})
}

// Kinds by which Gateways and what is attached to them are told apart.
const (
	kindGatewayClass = "GatewayClass"
	kindGateway      = "Gateway"
	kindListenerSet  = "ListenerSet"
)

// gatewayAPI and experimentalAPI name objects of the two groups.
func gatewayAPI(kind string, name ir.Name) source.Key {
	return source.Key{Group: gwv1.GroupName, Kind: kind, Namespace: name.Namespace, Name: name.Name}
}

func experimentalAPI(kind string, name ir.Name) source.Key {
	return source.Key{Group: gwxv1alpha1.GroupName, Kind: kind, Namespace: name.Namespace, Name: name.Name}
}

// declareReported lists the kinds. Statuses in items are copies.
func (p *Pipeline) declareReported() {
	report(p, p.classStatus, func(k string) source.Key { return gatewayAPI(kindGatewayClass, ir.Name{Name: k}) },
		func(c *flow.Ctx, k string, s *gwv1.GatewayClassStatus) *Item {
			class, ok := flow.Get(c, p.graph.Classes, k)
			if !ok || class.Object == nil {
				return nil
			}
			return classItem(class, s.DeepCopy())
		})
	report(p, p.gatewayStatus, func(k ir.Name) source.Key { return gatewayAPI(kindGateway, k) },
		func(c *flow.Ctx, k ir.Name, s *gwv1.GatewayStatus) *Item {
			gw, ok := flow.Get(c, p.graph.Gateways, k)
			if !ok {
				return nil
			}
			return p.gatewayItem(c, gw, s.DeepCopy())
		})
	report(p, p.setStatus, func(k ir.Name) source.Key { return gatewayAPI(kindListenerSet, k) },
		func(c *flow.Ctx, k ir.Name, s *gwv1.ListenerSetStatus) *Item {
			set, ok := flow.Get(c, p.graph.ListenerSets, k)
			if !ok {
				return nil
			}
			return p.setItem(c, set, s.DeepCopy())
		})
	report(p, p.policyStatus, func(k ir.Name) source.Key { return gatewayAPI("BackendTLSPolicy", k) },
		func(c *flow.Ctx, k ir.Name, s *gwv1.PolicyStatus) *Item {
			node, ok := flow.Get(c, p.graph.BackendTLSPolicies, k)
			if !ok {
				return nil
			}
			return policyItem(node, s.DeepCopy())
		})
	report(p, p.trafficStatus, func(k ir.Name) source.Key { return experimentalAPI("XBackendTrafficPolicy", k) },
		func(c *flow.Ctx, k ir.Name, s *gwv1.PolicyStatus) *Item {
			node, ok := flow.Get(c, p.graph.TrafficPolicies, k)
			if !ok {
				return nil
			}
			return trafficItem(node, s.DeepCopy())
		})
	report(p, p.xBackendStatus, func(k ir.Name) source.Key { return experimentalAPI("XBackend", k) },
		func(c *flow.Ctx, k ir.Name, s *gwxv1alpha1.BackendStatus) *Item {
			node, ok := flow.Get(c, p.graph.XBackends, k)
			if !ok {
				return nil
			}
			return xBackendItem(node, s.DeepCopy())
		})
	report(p, p.routeStatus, func(k topology.RouteKey) source.Key { return gatewayAPI(k.Kind, k.Name) },
		func(c *flow.Ctx, k topology.RouteKey, s *gwv1.RouteStatus) *Item {
			r, ok := flow.Get(c, p.graph.Routes, k)
			if !ok {
				return nil
			}
			return routeItem(r, s.DeepCopy())
		})
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
func (p *Pipeline) objects() []source.Key {
	var out []source.Key
	p.engine.View(func(c *flow.Ctx) {
		for name := range flow.All(c, p.inputs.Classes) {
			out = append(out, gatewayAPI(kindGatewayClass, ir.Name{Name: name}))
		}
		for k := range flow.All(c, p.inputs.Routes) {
			out = append(out, gatewayAPI(k.Kind, k.Name))
		}
		each := func(names func(yield func(ir.Name) bool), key func(ir.Name) source.Key) {
			for name := range names {
				out = append(out, key(name))
			}
		}
		each(keys(c, p.inputs.Gateways), func(n ir.Name) source.Key { return gatewayAPI(kindGateway, n) })
		each(keys(c, p.inputs.ListenerSets), func(n ir.Name) source.Key { return gatewayAPI(kindListenerSet, n) })
		each(keys(c, p.inputs.BackendTLSPolicies), func(n ir.Name) source.Key { return gatewayAPI("BackendTLSPolicy", n) })
		each(keys(c, p.inputs.TrafficPolicies), func(n ir.Name) source.Key { return experimentalAPI("XBackendTrafficPolicy", n) })
		each(keys(c, p.inputs.XBackends), func(n ir.Name) source.Key { return experimentalAPI("XBackend", n) })
	})
	return out
}

func keys[V any](c *flow.Ctx, t flow.Table[ir.Name, V]) func(yield func(ir.Name) bool) {
	return func(yield func(ir.Name) bool) {
		for name := range flow.All(c, t) {
			if !yield(name) {
				return
			}
		}
	}
}
