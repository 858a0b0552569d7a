package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayAccepted says that the Gateway and all its listeners are valid.
func GatewayAccepted() metav1.Condition {
	return yes(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonAccepted, "The Gateway is valid")
}

// GatewaySomeListenersNotValid says that the Gateway is served without some of its
// listeners.
func GatewaySomeListenersNotValid(listeners []string) metav1.Condition {
	return yes(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonListenersNotValid,
		fmt.Sprintf("The Gateway is served without %s; see the conditions there", listenersNamed(listeners)))
}

// GatewayNoValidListener says that the Gateway has no listener that can be served.
func GatewayNoValidListener(listeners []string) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonListenersNotValid,
		fmt.Sprintf("No listener can be served; see the conditions of %s", listenersNamed(listeners)))
}

// GatewayUnsupportedAddress says that spec.addresses asks for a type of address
// that can't be given.
func GatewayUnsupportedAddress(kind, value string) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonUnsupportedAddress,
		fmt.Sprintf("spec.addresses asks for %q of type %s; use type IPAddress, or remove it to get the default address", value, kind))
}

// GatewayInvalidParameters says that infrastructure.parametersRef names a kind
// that can't be used.
func GatewayInvalidParameters(kind, name string) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonInvalidParameters,
		fmt.Sprintf("spec.infrastructure.parametersRef names %s %q, which is not a kind of parameters that Gatehouse reads; remove parametersRef", kind, name))
}

// GatewayClassNotAccepted says that the Gateway waits for its class.
func GatewayClassNotAccepted(class, why string) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonInvalidParameters,
		fmt.Sprintf("GatewayClass %s is not accepted: %s", class, why))
}

// ReasonClassNotFound is that of GatewayClassNotFound.
const ReasonClassNotFound = "GatewayClassNotFound"

// GatewayClassNotFound says that the Gateway names a class that does not exist, and goes
// on with what it has of its former class.
func GatewayClassNotFound(named, former, controllerName string) metav1.Condition {
	what := fmt.Sprintf("spec.gatewayClassName names GatewayClass %q, which doesn't exist; ", named)
	if named == former {
		what += fmt.Sprintf("create it again with controllerName %s", controllerName)
	} else {
		what += fmt.Sprintf("name another one (it was %q), or create it with controllerName %s", former, controllerName)
	}
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayConditionReason(ReasonClassNotFound), what+"; until then "+goesOn)
}

// GatewayAddressNotUsable says which addresses of the spec can't be used, each
// part being an address and why.
func GatewayAddressNotUsable(problems []string) metav1.Condition {
	return no(gwv1.GatewayConditionProgrammed, gwv1.GatewayReasonAddressNotUsable,
		fmt.Sprintf("spec.addresses: %s; name addresses of this host, or remove them to get the default address", join(problems, "; ")))
}

// GatewayAddressNotGiven is GatewayAddressNotUsable where addresses are those of a
// Service.
func GatewayAddressNotGiven(problems []string) metav1.Condition {
	return no(gwv1.GatewayConditionProgrammed, gwv1.GatewayReasonAddressNotUsable,
		fmt.Sprintf("spec.addresses: %s; name addresses that the cluster's load balancer can give, or remove them to get any", join(problems, "; ")))
}

// GatewayProgrammed says that the proxies run the Gateway's configuration.
func GatewayProgrammed() metav1.Condition {
	return yes(gwv1.GatewayConditionProgrammed, gwv1.GatewayReasonProgrammed,
		"A proxy has acknowledged the configuration")
}

// GatewayPending says what the Gateway waits for before it is programmed.
func GatewayPending(what string) metav1.Condition {
	return no(gwv1.GatewayConditionProgrammed, gwv1.GatewayReasonPending, what)
}

// GatewayNotProgrammed says that a Gateway that is not accepted is not programmed
// either, for the same reason.
func GatewayNotProgrammed(accepted metav1.Condition) metav1.Condition {
	return no(gwv1.GatewayConditionProgrammed, gwv1.GatewayReasonInvalid, accepted.Message)
}

// GatewayAddressNotAssigned says that the Gateway has no address yet.
func GatewayAddressNotAssigned(why string) metav1.Condition {
	return no(gwv1.GatewayConditionProgrammed, gwv1.GatewayReasonAddressNotAssigned, why)
}

// GatewayResolvedRefs says that every reference of the Gateway and its listeners
// leads to something usable.
func GatewayResolvedRefs() metav1.Condition {
	return yes(gwv1.GatewayConditionResolvedRefs, gwv1.GatewayReasonResolvedRefs, "All references are resolved")
}

// GatewayListenersNotResolved says which listeners have references that can't be
// used.
func GatewayListenersNotResolved(listeners []string) metav1.Condition {
	return no(gwv1.GatewayConditionResolvedRefs, gwv1.GatewayReasonListenersNotResolved,
		fmt.Sprintf("Not all references of %s can be used; see the conditions there", listenersNamed(listeners)))
}

// defaultGateway is a type of condition.
const defaultGateway = "DefaultGateway"

// GatewayIsDefault says that the Gateway takes routes that ask for default Gateways
// of a scope. The API has no constants for it yet; the type is that of GEP-3793.
func GatewayIsDefault(scope string) metav1.Condition {
	return yes(defaultGateway, "DefaultScope", fmt.Sprintf("The Gateway has default scope %s, so routes with useDefaultGateways: %[1]s attach to it", scope))
}
