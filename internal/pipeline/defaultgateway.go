package pipeline

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareUndefaulted declares what is told of routes that ask for default Gateways
// where there are none. The API has no place for it: a status is written by the
// Gateway that takes the route.
func (p *Pipeline) declareUndefaulted() {
	asking := flow.Count("defaulted-routes", p.Inputs.Routes,
		func(k object.Key, o topology.RouteObject, yield func(object.Key)) {
			if _, ok := topology.DefaultScope(topology.UseDefaultGateways(o)); ok {
				yield(k)
			}
		})
	p.undefaulted = flow.Map("routes-without-default-gateway", asking,
		func(c *flow.Ctx, k object.Key, _ int, emit func(object.Key, source.Problem)) {
			if p.Options.Topology.ImplicitClass == "" {
				return // another controller may have one
			}
			if _, answered := flow.Get(c, p.Graph.Routes, k); answered {
				return
			}
			emit(k, source.Problem{
				Key:   k,
				Field: "spec.useDefaultGateways", Reason: source.Unknown,
				Message: "there is no default Gateway, so nobody serves this route; set spec.defaultScope: All on a Gateway, or name one in parentRefs",
			})
		})
}
