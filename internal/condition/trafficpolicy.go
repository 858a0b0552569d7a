package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TrafficPolicyInvalid says what is wrong with a TrafficPolicy. Settings that are broken are left
// out.
func TrafficPolicyInvalid(problems []string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid,
		joined(problems)+". A setting that is broken has no effect; the other settings are in force")
}

// WholeServiceTarget says that a policy of a kind can't be for a port of a Service.
func WholeServiceTarget(policy, field string) string {
	return fmt.Sprintf("%s.sectionName is set; %s is for a whole Service, so leave it out", field, withArticle(policy))
}

// NotOfBackend says that a setting of a policy for Services is not about backends.
func NotOfBackend(field string) string {
	return field + " is not about backends, and the policy is for a Service; write it in a policy for Gateways or routes"
}

// TrafficPolicyEmpty is TrafficPolicyInvalid of a policy without settings.
func TrafficPolicyEmpty(problems []string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid, joined(problems)+". Until it has some, what is inherited stays in force")
}
