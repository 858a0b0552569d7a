package control

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareUndefaulted declares what is told of routes that ask for default Gateways
// where there are none. The API has no place for it: a status is written by the
// Gateway that takes the route.
func (p *Pipeline) declareUndefaulted() {
	asking := flow.Count("defaulted-routes", p.inputs.Routes,
		func(k topology.RouteKey, o topology.RouteObject, yield func(topology.RouteKey)) {
			if _, ok := topology.DefaultScope(topology.UseDefaultGateways(o)); ok {
				yield(k)
			}
		})
	p.undefaulted = flow.Map("routes-without-default-gateway", asking,
		func(c *flow.Ctx, k topology.RouteKey, _ int, emit func(topology.RouteKey, source.Problem)) {
			if p.opts.Topology.ImplicitClass == "" {
				return // another controller may have one
			}
			if _, answered := flow.Get(c, p.graph.Routes, k); answered {
				return
			}
			emit(k, source.Problem{
				Key:   source.Key{Group: gwv1.GroupName, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name.Name},
				Field: "spec.useDefaultGateways", Reason: source.Unknown,
				Message: "there is no default Gateway, so nobody serves this route; set spec.defaultScope: All on a Gateway, or name one in parentRefs",
			})
		})
}
