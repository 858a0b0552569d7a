package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// defaultGateway is a Gateway of ours to which routes attach that name none.
type defaultGateway struct {
	scope gwv1.GatewayDefaultScope
	// ref is what a route's status names the Gateway by: what the route would have
	// had to say.
	ref *gwv1.ParentReference
}

// declareDefaultGateways orders the default Gateways by their scope. A route that
// doesn't ask for them never looks here.
func (g *Graph) declareDefaultGateways() *flow.Index[gwv1.GatewayDefaultScope, object.Name, defaultGateway] {
	gateways := flow.Map("topology-default-gateways", g.owned,
		func(_ *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(object.Name, defaultGateway)) {
			if scope, ok := DefaultScope(gw.Spec.DefaultScope); ok {
				emit(name, defaultGateway{scope, &gwv1.ParentReference{
					Group: &gatewayGroup, Kind: new(gwv1.Kind(gatewayKind)),
					Namespace: new(gwv1.Namespace(name.Namespace)), Name: gwv1.ObjectName(name.Name),
				}})
			}
		}, flow.Equal(func(a, b defaultGateway) bool { return a.scope == b.scope }))
	return flow.NewIndex(gateways,
		func(_ object.Name, d defaultGateway, yield func(gwv1.GatewayDefaultScope)) { yield(d.scope) }, object.Name.Compare)
}

// DefaultScope returns the scope of a Gateway's defaultScope or a route's
// useDefaultGateways, if it is one.
func DefaultScope(s gwv1.GatewayDefaultScope) (gwv1.GatewayDefaultScope, bool) {
	return s, s != "" && s != gwv1.GatewayDefaultScopeNone
}

// defaultGatewaysOf returns the default Gateways that a route asks for.
func (g *Graph) defaultGatewaysOf(c *flow.Ctx, o RouteObject) (flow.Members[object.Name, defaultGateway], bool) {
	scope, ok := DefaultScope(UseDefaultGateways(o))
	if !ok {
		return flow.Members[object.Name, defaultGateway]{}, false
	}
	members := flow.Select(c, g.defaults, scope)
	return members, members.Len() > 0
}

// defaultParents answers for the default Gateways that a route asks for, as if it
// had named each. One that it does name is answered there.
func (g *Graph) defaultParents(c *flow.Ctx, r *candidate, o RouteObject, parents []Parent) []Parent {
	gateways, ok := g.defaultGatewaysOf(c, o)
	if !ok {
		return parents
	}
	for name, d := range gateways.All() {
		if namesWhole(r.key.Name, ParentRefs(o), name) {
			continue
		}
		if p, ok := g.gatewayParent(c, r, d.ref, name); ok {
			p.Ref = d.ref
			parents = append(parents, p)
		}
	}
	return parents
}

// namesWhole reports whether one of the parentRefs names the Gateway with all of
// its listeners.
func namesWhole(route object.Name, refs []gwv1.ParentReference, gateway object.Name) bool {
	for i := range refs {
		kind, name := ParentOf(route, &refs[i])
		if kind == gatewayKind && name == gateway &&
			valueOr(refs[i].SectionName, "") == "" && valueOr(refs[i].Port, 0) == 0 {
			return true
		}
	}
	return false
}
