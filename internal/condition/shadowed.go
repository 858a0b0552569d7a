package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Shadowed says that an object, of whatever kind, is not used since another source of
// the controller's defines it too.
func Shadowed(by string) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.PolicyReasonConflicted,
		fmt.Sprintf("The controller has this object from %s too, which its configuration lists first: that one is used, not this one. Delete one of the two", by))
}
