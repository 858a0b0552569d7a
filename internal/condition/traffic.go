package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TrafficPolicyConflicted says which policy takes precedence over this one for a
// target.
func TrafficPolicyConflicted(target, winner string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonConflicted,
		fmt.Sprintf("XBackendTrafficPolicy %s targets %s too, and takes precedence; remove one of the two", winner, target))
}
