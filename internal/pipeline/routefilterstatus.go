package pipeline

import (
	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// declareRouteFilterStatus declares what people are told of RouteFilters.
func (p *Pipeline) declareRouteFilterStatus() {
	p.RouteFilterStatus = flow.Map("route-filter-status", p.Graph.RouteFilters,
		func(_ *flow.Ctx, k object.Name, f *topology.RouteFilter, emit func(object.Name, *v1alpha1.RouteFilterStatus)) {
			emit(k, &v1alpha1.RouteFilterStatus{Conditions: status.RouteFilter(f, translate.RouteFilter(f))})
		})
}
