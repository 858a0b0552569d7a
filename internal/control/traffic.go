package control

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareTrafficStatus declares what people are told of XBackendTrafficPolicies.
func (p *Pipeline) declareTrafficStatus() {
	p.trafficStatus = flow.Map("traffic-policy-status", p.graph.TrafficPolicies,
		func(c *flow.Ctx, k object.Name, node *topology.TrafficPolicy, emit func(object.Name, *gwv1.PolicyStatus)) {
			ancestors, _ := flow.Get(c, p.graph.TrafficAncestors, k)
			s := status.TrafficPolicy(p.opts.Topology.ControllerName, node, ancestors)
			emit(k, &s)
		})
}

// trafficItem shows what a policy targets where routes show their parents.
func trafficItem(_ *flow.Ctx, node *topology.TrafficPolicy, s *gwv1.PolicyStatus) *Item {
	out := item("XBackendTrafficPolicy", node.Name.Namespace, node.Name.Name, node.Object.Generation, s)
	out.Summary = policySummary(s)
	for _, t := range node.Object.Spec.TargetRefs {
		out.Summary.Parents = append(out.Summary.Parents, node.Name.Namespace+"/"+string(t.Name))
	}
	return out
}
