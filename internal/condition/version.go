package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// SupportedVersion says that the cluster's definitions of the Gateway API are of
// the version that Gatehouse is made for.
func SupportedVersion(version string) metav1.Condition {
	return yes(gwv1.GatewayClassConditionStatusSupportedVersion, gwv1.GatewayClassReasonSupportedVersion,
		"the CustomResourceDefinitions of the Gateway API are of "+version)
}

// UnsupportedVersion says that they are of another minor version, or some of them.
// found names versions and definitions.
func UnsupportedVersion(found, made string) metav1.Condition {
	return no(gwv1.GatewayClassConditionStatusSupportedVersion, gwv1.GatewayClassReasonUnsupportedVersion,
		fmt.Sprintf("CustomResourceDefinitions of the Gateway API are of %s; Gatehouse is made for %s and does what it can: fields that only one of them has take no effect. Install the definitions of %s", found, made, made))
}

// UnusableVersion says that they are of a version that may mean something else.
func UnusableVersion(found, made string) metav1.Condition {
	return no(gwv1.GatewayClassConditionStatusSupportedVersion, gwv1.GatewayClassReasonUnsupportedVersion, unusable(found, made))
}

// ClassUnusableVersion is UnusableVersion for the Accepted condition.
func ClassUnusableVersion(found, made string) metav1.Condition {
	return no(gwv1.GatewayClassConditionStatusAccepted, gwv1.GatewayClassReasonUnsupportedVersion, unusable(found, made))
}

func unusable(found, made string) string {
	return fmt.Sprintf("CustomResourceDefinitions of the Gateway API are of %s, which Gatehouse doesn't know: no change takes effect, and what is served stays as it is. Install the definitions of %s", found, made)
}
