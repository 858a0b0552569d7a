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

// copied is the pointer to a status, of which a copy can be made.
type copied[S any] interface {
	*S
	DeepCopy() *S
}

// report adds a table of statuses to what is reported. object names an entry, nodes
// have what it is about, and item shows that with a copy of the status, nil where
// there is no object to show.
func report[K comparable, N, S any, P copied[S]](p *Pipeline, t *flow.Derived[K, *S], object func(K) source.Key,
	nodes flow.Table[K, N], item func(*flow.Ctx, N, *S) *Item,
) {
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

// declareReported lists the kinds.
func (p *Pipeline) declareReported() {
	of := func(api func(string, ir.Name) source.Key, kind string) func(ir.Name) source.Key {
		return func(name ir.Name) source.Key { return api(kind, name) }
	}
	report(p, p.classStatus, func(k string) source.Key { return gatewayAPI(kindGatewayClass, ir.Name{Name: k}) }, p.graph.Classes, classItem)
	report(p, p.gatewayStatus, of(gatewayAPI, kindGateway), p.graph.Gateways, p.gatewayItem)
	report(p, p.setStatus, of(gatewayAPI, kindListenerSet), p.graph.ListenerSets, p.setItem)
	report(p, p.policyStatus, of(gatewayAPI, "BackendTLSPolicy"), p.graph.BackendTLSPolicies, policyItem)
	report(p, p.trafficStatus, of(experimentalAPI, "XBackendTrafficPolicy"), p.graph.TrafficPolicies, trafficItem)
	report(p, p.xBackendStatus, of(experimentalAPI, "XBackend"), p.graph.XBackends, xBackendItem)
	report(p, p.routeStatus, func(k topology.RouteKey) source.Key { return gatewayAPI(k.Kind, k.Name) }, p.graph.Routes, routeItem)
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
