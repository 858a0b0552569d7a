package pipeline

import (
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareXBackendStatus declares what people are told of XBackends.
func (p *Pipeline) declareXBackendStatus() {
	p.XBackendStatus = flow.Map("xbackend-status", p.Graph.XBackends,
		func(c *flow.Ctx, k object.Name, node *topology.XBackend, emit func(object.Name, *gwxv1alpha1.BackendStatus)) {
			ancestors, _ := flow.Get(c, p.Graph.XBackendAncestors, k)
			s := status.XBackend(p.Options.Topology.ControllerName, node, ancestors)
			emit(k, &s)
		})
}
