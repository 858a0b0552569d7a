package topology

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

const httpRoute = "HTTPRoute"

func (g *Graph) declareRoutes() flow.Table[RouteKey, *Route] {
	return flow.Map("topology-routes", g.in.HTTPRoutes,
		func(c *flow.Ctx, name ir.Name, o *gwv1.HTTPRoute, emit func(RouteKey, *Route)) {
			if g.answers(c, name, o.Spec.ParentRefs) {
				emit(RouteKey{httpRoute, name}, g.route(c, name, o))
			}
		})
}

// answers reports whether one of the parentRefs is ours to answer.
func (g *Graph) answers(c *flow.Ctx, route ir.Name, refs []gwv1.ParentReference) bool {
	for i := range refs {
		gateway, ok := parentGateway(route, &refs[i])
		if !ok {
			continue
		}
		if _, ours := flow.Get(c, g.ours, gateway); ours || g.abandoned(c, gateway) {
			return true
		}
	}
	return false
}

// route resolves a route's references.
func (g *Graph) route(c *flow.Ctx, name ir.Name, o *gwv1.HTTPRoute) *Route {
	r := &Route{
		Key: RouteKey{httpRoute, name}, Object: o,
		Rules: make([]RouteRule, len(o.Spec.Rules)),
	}
	var problems []metav1.Condition
	resolve := func(ref *gwv1.BackendObjectReference, field func() string) BackendRef {
		b := g.backend(c, name, ref, field)
		if b.Problem != nil {
			problems = append(problems, *b.Problem)
		}
		return b
	}
	for i := range o.Spec.Rules {
		rule := &o.Spec.Rules[i]
		out := &r.Rules[i]
		if n := len(rule.BackendRefs); n > 0 {
			out.Backends = make([]BackendRef, n)
		}
		for j := range rule.BackendRefs {
			out.Backends[j] = resolve(&rule.BackendRefs[j].BackendObjectReference,
				func() string { return fmt.Sprintf("spec.rules[%d].backendRefs[%d]", i, j) })
		}
		for j := range rule.Filters {
			if m := rule.Filters[j].RequestMirror; m != nil {
				out.Mirrors = append(out.Mirrors, resolve(&m.BackendRef,
					func() string { return fmt.Sprintf("spec.rules[%d].filters[%d].requestMirror.backendRef", i, j) }))
			}
		}
	}
	r.ResolvedRefs = condition.RouteResolvedRefs()
	if len(problems) > 0 {
		r.ResolvedRefs = condition.RouteNotResolved(problems)
	}
	return r
}
