package status

import (
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// maxPoolParents is the API's limit.
const maxPoolParents = 32

// InferencePool is the status of an InferencePool: our entries in it, one for each Gateway with a route to it.
func InferencePool(controllerName string, node *topology.InferencePool, list []topology.Ancestor) poolsv1.InferencePoolStatus {
	out := poolsv1.InferencePoolStatus{Parents: []poolsv1.ParentStatus{}}
	for _, a := range list[:min(len(list), maxPoolParents)] {
		out.Parents = append(out.Parents, kind.PoolParent(kind.Entry{
			Controller: gwv1.GatewayController(controllerName), Ref: gatewayRef(a.Gateway),
			Conditions: observed(node.Object, a.Accepted, node.ResolvedRefs),
		}))
	}
	return out
}
