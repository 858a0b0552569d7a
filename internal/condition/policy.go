package condition

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// KindConflicted says that another policy of a kind takes precedence on a target.
func KindConflicted(kind, target, winner string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonConflicted,
		fmt.Sprintf("%s %s targets %s too, and takes precedence; remove one of the two", kind, winner, target))
}

// policyReasonAffected is the reason of the condition that says what policies target (GEP-713).
const policyReasonAffected gwv1.PolicyConditionReason = "PolicyAffected"

// policyAffected is the type of the condition of what policies of a kind target.
func policyAffected(kind string) string { return "gatehouse.dev/" + kind + "Affected" }

// PolicyAffected says which policies of a kind target an object: by name those that whoever
// reads it may know, and how many others.
func PolicyAffected(kind string, names []string, others int) metav1.Condition {
	if n := len(names) - maxProblems; n > 0 {
		names = append(slices.Clone(names[:maxProblems]), fmt.Sprintf("%d more", n))
	}
	if others > 0 {
		names = append(slices.Clone(names), fmt.Sprintf("%d of other namespaces", others))
	}
	return yes(gwv1.PolicyConditionType(policyAffected(kind)), policyReasonAffected,
		fmt.Sprintf("Object affected by %s %s", kind, strings.Join(names, ", ")))
}

// PolicyUnusable says why a policy can't be used.
func PolicyUnusable(why string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid, why)
}
