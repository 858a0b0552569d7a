package topology

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

func (g *Graph) declareRoutes() flow.Table[object.Key, *Route] {
	return flow.Map("topology-routes", g.in.Routes,
		func(c *flow.Ctx, key object.Key, o RouteObject, emit func(object.Key, *Route)) {
			if g.answers(c, key.Name, o) {
				emit(key, g.route(c, key, o))
			}
		})
}

// answers reports whether one of the parentRefs is ours to answer, or a default
// Gateway of ours is asked for.
func (g *Graph) answers(c *flow.Ctx, route object.Name, o RouteObject) bool {
	refs := ParentRefs(o)
	for i := range refs {
		kind, parent := ParentOf(route, &refs[i])
		switch kind {
		case gatewayKind:
			if _, ours := flow.Get(c, g.ours, parent); ours || g.missingGateway(c, parent) {
				return true
			}
		case listenerSetKind:
			if _, ours := flow.Get(c, g.ourSets, parent); ours || g.missingSet(c, parent) {
				return true
			}
		}
	}
	_, asks := g.defaultGatewaysOf(c, o)
	return asks
}

// route resolves a route's references.
func (g *Graph) route(c *flow.Ctx, key object.Key, o RouteObject) *Route {
	r := resolver{g: g, c: c, route: key}
	node := &Route{Key: key, Object: o, Rules: r.rules(o)}
	slices.SortFunc(r.policyTargets, object.Key.Compare)
	node.PolicyTargets = slices.Compact(r.policyTargets)
	if len(r.problems) > 0 {
		unresolved := condition.RouteNotResolved(r.problems)
		node.Unresolved = &unresolved
	}
	return node
}

// rules resolves the references of all rules of a route.
func (r *resolver) rules(o RouteObject) []RouteRule {
	switch o := o.(type) {
	case *gwv1.HTTPRoute:
		return r.httpRules(o.Spec.Rules)
	case *gwv1.GRPCRoute:
		return r.grpcRules(o.Spec.Rules)
	case *gwv1.TLSRoute:
		return forwardRules(r, ir.UseTCP, o.Spec.Rules, func(rule *gwv1.TLSRouteRule) []gwv1.BackendRef { return rule.BackendRefs })
	case *gwv1.TCPRoute:
		return forwardRules(r, ir.UseTCP, o.Spec.Rules, func(rule *gwv1.TCPRouteRule) []gwv1.BackendRef { return rule.BackendRefs })
	case *gwv1.UDPRoute:
		return forwardRules(r, ir.UseUDP, o.Spec.Rules, func(rule *gwv1.UDPRouteRule) []gwv1.BackendRef { return rule.BackendRefs })
	}
	return nil
}

// resolver follows the references of one route.
type resolver struct {
	g             *Graph
	c             *flow.Ctx
	route         object.Key
	problems      []metav1.Condition
	waits         []object.Key // what is broken and told elsewhere
	policyTargets []object.Key
}

func (r *resolver) httpRules(rules []gwv1.HTTPRouteRule) []RouteRule {
	out := make([]RouteRule, len(rules))
	for i := range rules {
		rule := &rules[i]
		out[i].Backends = r.backends(ir.UseHTTP, i, len(rule.BackendRefs), func(j int) *gwv1.BackendObjectReference {
			return &rule.BackendRefs[j].BackendObjectReference
		})
		for j := range rule.Filters {
			r.mirror(&out[i], ir.UseHTTP, i, j, rule.Filters[j].RequestMirror)
			r.extension(&out[i], rule.Filters[j].ExtensionRef)
			if a := rule.Filters[j].ExternalAuth; a != nil && out[i].Auth == nil {
				out[i].Auth = r.auth(a, func() string { return fmt.Sprintf("spec.rules[%d].filters[%d].externalAuth.backendRef", i, j) })
			}
		}
	}
	return out
}

// backends resolves the n backendRefs of a rule.
func (r *resolver) backends(use ir.Use, rule, n int, at func(int) *gwv1.BackendObjectReference) []BackendRef {
	if n == 0 {
		return nil
	}
	out := make([]BackendRef, n)
	for j := range out {
		out[j] = r.backend(use, at(j), func() string { return fmt.Sprintf("spec.rules[%d].backendRefs[%d]", rule, j) })
	}
	return out
}

// mirror resolves the backend of a filter that mirrors, if it is one.
func (r *resolver) mirror(out *RouteRule, use ir.Use, rule, filter int, m *gwv1.HTTPRequestMirrorFilter) {
	if m == nil {
		return
	}
	field := func() string { return fmt.Sprintf("spec.rules[%d].filters[%d].requestMirror.backendRef", rule, filter) }
	ref := r.backend(use, &m.BackendRef, field)
	if to := ref.Backend.Backend().Object; to.Kind == kind.InferencePool {
		// Nobody is asked where copies go.
		ref = problem(condition.PoolOnlyBackend(field(), to.String()))
		r.problems = append(r.problems, *ref.Problem)
	}
	out.Mirrors = append(out.Mirrors, ref)
}
