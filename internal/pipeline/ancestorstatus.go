package pipeline

import (
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/status"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareBackendTrafficStatus declares what people are told of XBackendTrafficPolicies.
func (p *Pipeline) declareBackendTrafficStatus() {
	p.BackendTrafficPolicyStatus = ancestorStatus(p, "backend-traffic-policy-status", p.Graph.BackendTrafficPolicies, p.Graph.BackendTrafficAncestors, status.BackendTrafficPolicy)
}

// declareXBackendStatus declares what people are told of XBackends.
func (p *Pipeline) declareXBackendStatus() {
	p.XBackendStatus = ancestorStatus(p, "xbackend-status", p.Graph.XBackends, p.Graph.XBackendAncestors, status.XBackend)
}

// declareInferencePoolStatus declares what people are told of InferencePools.
func (p *Pipeline) declareInferencePoolStatus() {
	p.InferencePoolStatus = ancestorStatus(p, "inference-pool-status", p.Graph.InferencePools, p.Graph.InferencePoolAncestors, status.InferencePool)
}

// ancestorStatus declares the statuses of a kind that follow from the node and its
// ancestors alone.
func ancestorStatus[N any, S gwv1.PolicyStatus | gwxv1alpha1.BackendStatus | poolsv1.InferencePoolStatus](
	p *Pipeline, table string, nodes flow.Table[object.Name, N], ancestors flow.Table[object.Name, []topology.Ancestor],
	of func(controllerName string, node N, ancestors []topology.Ancestor) S,
) *flow.Derived[object.Name, *S] {
	return flow.Map(table, nodes, func(c *flow.Ctx, k object.Name, node N, emit func(object.Name, *S)) {
		list, _ := flow.Get(c, ancestors, k)
		s := of(p.Options.Topology.ControllerName, node, list)
		emit(k, &s)
	})
}
