package pipeline

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareTrafficStatus declares what people are told of XBackendTrafficPolicies.
func (p *Pipeline) declareTrafficStatus() {
	p.TrafficPolicyStatus = flow.Map("traffic-policy-status", p.Graph.TrafficPolicies,
		func(c *flow.Ctx, k object.Name, node *topology.TrafficPolicy, emit func(object.Name, *gwv1.PolicyStatus)) {
			ancestors, _ := flow.Get(c, p.Graph.TrafficAncestors, k)
			s := status.TrafficPolicy(p.Options.Topology.ControllerName, node, ancestors)
			emit(k, &s)
		})
}
