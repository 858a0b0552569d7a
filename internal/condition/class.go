package condition

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ClassAccepted says that Gateways of the class are served.
func ClassAccepted() metav1.Condition {
	return yes(gwv1.GatewayClassConditionStatusAccepted, gwv1.GatewayClassReasonAccepted,
		"Gateways of this class are served")
}

// NoteClassDeleted says that a class has been deleted, and is kept for its Gateways.
func NoteClassDeleted(name string) string {
	return "GatewayClass " + name + classDeleted
}

// DeletedClass is what a condition says about a class that has been deleted; empty for
// nothing.
func DeletedClass(c metav1.Condition) string {
	for note := range strings.SplitSeq(c.Message, "; ") {
		if strings.Contains(note, classDeleted) {
			return note
		}
	}
	return ""
}

// ClassInvalidParameters says that parametersRef names a kind that can't be used.
func ClassInvalidParameters(kind, name string) metav1.Condition {
	return no(gwv1.GatewayClassConditionStatusAccepted, gwv1.GatewayClassReasonInvalidParameters,
		fmt.Sprintf("spec.parametersRef names %s %q, which is not a kind of parameters that Gatehouse reads; remove parametersRef", kind, name))
}

// ClassConflict says that a process serves one GatewayClass, and this is another one.
func ClassConflict() metav1.Condition {
	return no(gwv1.GatewayClassConditionStatusAccepted, gwv1.GatewayClassConditionReason("GatewayClassConflict"),
		"The resource is ignored due to a conflicting GatewayClass resource")
}

// GatewayConflict says that a process serves one Gateway of a class, and this is
// another one.
func GatewayConflict(served string) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayConditionReason("GatewayConflict"),
		fmt.Sprintf("One Gateway of the class is served, the oldest, which is %s: delete that one, or run a process for this one with --gateway", served))
}
