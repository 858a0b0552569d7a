package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// KindConflicted says that another policy of a kind takes precedence on a target.
func KindConflicted(kind, target, winner string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonConflicted,
		fmt.Sprintf("%s %s targets %s too, and takes precedence; remove one of the two", kind, winner, target))
}

// PolicyUnusable says why a policy can't be used.
func PolicyUnusable(why string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid, why)
}
