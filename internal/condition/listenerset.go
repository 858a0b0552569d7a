package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// parentNotProgrammed is a reason that the API names without a constant.
const parentNotProgrammed = gwv1.ListenerSetConditionReason("ParentNotProgrammed")

// ListenerSetAccepted says that the set and all its listeners are valid.
func ListenerSetAccepted() metav1.Condition {
	return yes(gwv1.ListenerSetConditionAccepted, gwv1.ListenerSetReasonAccepted, "The ListenerSet is attached")
}

// ListenerSetSomeListenersNotValid says that the set is served without some of its
// listeners.
func ListenerSetSomeListenersNotValid(listeners []string) metav1.Condition {
	return yes(gwv1.ListenerSetConditionAccepted, gwv1.ListenerSetReasonListenersNotValid,
		fmt.Sprintf("The ListenerSet is served without %s; see the conditions there", listenersNamed(listeners)))
}

// ListenerSetNoValidListener says that the set has no listener that can be served.
func ListenerSetNoValidListener(listeners []string) metav1.Condition {
	return no(gwv1.ListenerSetConditionAccepted, gwv1.ListenerSetReasonListenersNotValid,
		fmt.Sprintf("No listener can be served; see the conditions of %s", listenersNamed(listeners)))
}

// ListenerSetNotAllowed says that the Gateway allows no sets from the namespace;
// from is spec.allowedListeners.namespaces.from.
func ListenerSetNotAllowed(gateway, from, namespace string) metav1.Condition {
	return no(gwv1.ListenerSetConditionAccepted, gwv1.ListenerSetReasonNotAllowed,
		fmt.Sprintf("Gateway %s allows no ListenerSets from namespace %s (spec.allowedListeners.namespaces.from is %s); its owner can allow the namespace there", gateway, namespace, from))
}

// ListenerSetNoGateway says that the set's Gateway does not exist.
func ListenerSetNoGateway(gateway Missing) metav1.Condition {
	return no(gwv1.ListenerSetConditionAccepted, gateway.reason(string(gwv1.ListenerSetReasonParentNotAccepted)), gateway.text("parentRef"))
}

// ListenerSetParentNotAccepted says that the set waits for its Gateway.
func ListenerSetParentNotAccepted(gateway, why string) metav1.Condition {
	return no(gwv1.ListenerSetConditionAccepted, gwv1.ListenerSetReasonParentNotAccepted,
		fmt.Sprintf("Gateway %s is not accepted: %s", gateway, why))
}

// ListenerSetProgrammed says that the proxies run the set's listeners.
func ListenerSetProgrammed() metav1.Condition {
	return yes(gwv1.ListenerSetConditionProgrammed, gwv1.ListenerSetReasonProgrammed, "A proxy has acknowledged the configuration")
}

// ListenerSetProgrammedWithout says which listeners the proxies don't run.
func ListenerSetProgrammedWithout(listeners []string) metav1.Condition {
	return yes(gwv1.ListenerSetConditionProgrammed, gwv1.ListenerSetReasonProgrammed,
		fmt.Sprintf("A proxy has acknowledged the configuration, except for %s; see the conditions there", listenersNamed(listeners)))
}

// ListenerSetNoListenerProgrammed says that no listener of the set is in force.
func ListenerSetNoListenerProgrammed(listeners []string) metav1.Condition {
	return no(gwv1.ListenerSetConditionProgrammed, gwv1.ListenerSetReasonListenersNotValid,
		fmt.Sprintf("No listener is in force; see the conditions of %s", listenersNamed(listeners)))
}

// ListenerSetOldProgrammed is GatewayOldProgrammed of a ListenerSet.
func ListenerSetOldProgrammed(listeners []string) metav1.Condition {
	return no(gwv1.ListenerSetConditionProgrammed, gwv1.ListenerSetReasonListenersNotValid, oldInForce(listeners))
}

// ListenerSetOldListeners is GatewayOldListeners of a ListenerSet.
func ListenerSetOldListeners(listeners []string) metav1.Condition {
	return yes(gwv1.ListenerSetConditionAccepted, gwv1.ListenerSetReasonListenersNotValid,
		fmt.Sprintf("The ListenerSet is served with an earlier version of %s; see the conditions there", listenersNamed(listeners)))
}

// ListenerSetPending says what the set waits for before it is programmed.
func ListenerSetPending(what string) metav1.Condition {
	return no(gwv1.ListenerSetConditionProgrammed, gwv1.ListenerSetReasonPending, what)
}

// ListenerSetNotProgrammed says that a set that is not accepted is not programmed
// either, for the same reason.
func ListenerSetNotProgrammed(accepted metav1.Condition) metav1.Condition {
	return no(gwv1.ListenerSetConditionProgrammed, accepted.Reason, accepted.Message)
}

// ListenerSetParentNotProgrammed says what keeps the set's Gateway from being
// programmed.
func ListenerSetParentNotProgrammed(gateway, why string) metav1.Condition {
	return no(gwv1.ListenerSetConditionProgrammed, parentNotProgrammed,
		fmt.Sprintf("Gateway %s is not programmed: %s", gateway, why))
}
