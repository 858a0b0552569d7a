package status

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// maxXBackendAncestors is the API's limit.
const maxXBackendAncestors = 32

// XBackend is the status of an XBackend: our entries in it, one for each Gateway
// with a route to it.
func XBackend(controllerName string, node *topology.XBackend, list []topology.Ancestor) gwxv1alpha1.BackendStatus {
	out := gwxv1alpha1.BackendStatus{Ancestors: []gwxv1alpha1.BackendAncestorStatus{}}
	for _, a := range list[:min(len(list), maxXBackendAncestors)] {
		out.Ancestors = append(out.Ancestors, gwxv1alpha1.BackendAncestorStatus{
			AncestorRef:    gatewayRef(a.Gateway),
			ControllerName: gwv1.GatewayController(controllerName),
			Conditions:     observed(node.Object, a.Accepted),
		})
	}
	return out
}
