package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

func (r *resolver) grpcRules(rules []gwv1.GRPCRouteRule) []RouteRule {
	out := make([]RouteRule, len(rules))
	for i := range rules {
		rule := &rules[i]
		out[i].Backends = r.backends(ir.UseGRPC, i, len(rule.BackendRefs), func(j int) *gwv1.BackendObjectReference {
			return &rule.BackendRefs[j].BackendObjectReference
		})
		for j := range rule.Filters {
			r.mirror(&out[i], ir.UseGRPC, i, j, rule.Filters[j].RequestMirror)
		}
	}
	return out
}

// parentName is a Gateway or a ListenerSet, as parentRefs name it, or all default
// Gateways of a scope.
type parentName struct {
	kind  gwv1.Kind
	name  object.Name
	scope gwv1.GatewayDefaultScope
}

// namesOf are the names by which routes can mean a Gateway.
func namesOf(gw *gwv1.Gateway) []parentName {
	names := []parentName{{kind: gatewayKind, name: object.Name{Namespace: gw.Namespace, Name: gw.Name}}}
	if scope, ok := DefaultScope(gw.Spec.DefaultScope); ok {
		names = append(names, parentName{scope: scope})
	}
	return names
}

// declareGRPCParents names the parents of GRPCRoutes.
func (g *Graph) declareGRPCParents() flow.Table[parentName, struct{}] {
	return flow.Keys("topology-grpc-parents",
		func(k object.Key, o RouteObject, yield func(parentName)) {
			if k.Kind != kind.GRPCRoute {
				return
			}
			refs := ParentRefs(o)
			for i := range refs {
				if kind, name := ParentOf(k.Name, &refs[i]); kind != "" {
					yield(parentName{kind: kind, name: name})
				}
			}
			if scope, ok := DefaultScope(UseDefaultGateways(o)); ok {
				yield(parentName{scope: scope})
			}
		}, g.in.Routes)
}
