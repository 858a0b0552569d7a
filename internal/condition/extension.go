package condition

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// extended is the type of the condition of Gateways whose resources extension servers are asked about.
const extended = "gatehouse.dev/Extended"

// The reasons of that condition.
const (
	reasonExtended    gwv1.GatewayConditionReason = "Extended"
	reasonNotExtended gwv1.GatewayConditionReason = "WithoutUsableAnswer"
)

// GatewayExtended says that extension servers have answered, or about what they haven't and why.
func GatewayExtended(wrong []string) metav1.Condition {
	if len(wrong) == 0 {
		return yes(gwv1.GatewayConditionType(extended), reasonExtended, "Extension servers have answered about all that is sent to the proxies")
	}
	return no(gwv1.GatewayConditionType(extended), reasonNotExtended,
		few(wrong)+". With failureMode Open this is served without the extension, with Closed as it was before, or not at all")
}
