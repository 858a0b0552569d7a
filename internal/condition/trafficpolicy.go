package condition

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TrafficPolicyInvalid says what is wrong with a TrafficPolicy. Settings that are broken are left
// out.
func TrafficPolicyInvalid(problems []string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid,
		joined(problems)+". A setting that is broken has no effect; the other settings are in force")
}

// TrafficPolicyEmpty is TrafficPolicyInvalid of a policy without settings.
func TrafficPolicyEmpty(problems []string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid, joined(problems)+". Until it has some, what is inherited stays in force")
}
