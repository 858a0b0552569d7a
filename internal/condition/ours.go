package condition

import (
	"slices"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ours are the types of all conditions that there are constructors for.
var ours = []string{
	string(gwv1.GatewayConditionAccepted),
	string(gwv1.GatewayConditionProgrammed),
	string(gwv1.GatewayConditionResolvedRefs),
	string(gwv1.GatewayConditionAddressesAssigned),
	string(gwv1.GatewayConditionInsecureFrontendValidationMode),
	string(gwv1.ListenerConditionConflicted),
	string(gwv1.ListenerConditionOverlappingTLSConfig),
	string(gwv1.RouteConditionPartiallyInvalid),
	string(gwv1.GatewayClassConditionStatusSupportedVersion),
	defaultGateway,
	GatewayRolledOut,
	patched,
	extended,
	policyAffected("AuthPolicy"),
	policyAffected("RateLimitPolicy"),
	policyAffected("TrafficPolicy"),
}

// Ours reports whether we set and remove conditions of a type. Conditions of other
// types belong to others.
func Ours(kind string) bool { return slices.Contains(ours, kind) }
