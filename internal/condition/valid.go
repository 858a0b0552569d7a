package condition

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Valid says that an object is read, of a kind that nothing else depends on.
func Valid() metav1.Condition {
	return yes(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonAccepted, "The object is valid; nothing that is served depends on it")
}
