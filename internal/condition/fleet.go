package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// AddressNoService says that there is no Service yet that could have an address, and
// why if that is known.
func AddressNoService(service, problem string) string {
	if problem != "" {
		return problem
	}
	return fmt.Sprintf("Service %s is not there yet", service)
}

// AddressNoUnmanagedService says that nobody has made the Service that a Gateway is to be
// reached by, where that is not the controller's business.
func AddressNoUnmanagedService(service, label, value string) string {
	return fmt.Sprintf("there is no Service %s with the label %s: %s; make it, since infrastructure.type is None", service, label, value)
}

// AddressServicePending says that a Service has no address.
func AddressServicePending(service, kind string) string {
	if kind == "LoadBalancer" {
		return fmt.Sprintf("Service %s of type LoadBalancer has no address yet; is there a load balancer controller in the cluster? Else choose another service.type by GatewayParameters", service)
	}
	return fmt.Sprintf("Service %s of type %s has no address", service, kind)
}

// NoteFleetProblem says that a fleet is not what it should be, although it serves.
func NoteFleetProblem(problem string) string {
	return "the proxies can't be made as they should be: " + problem
}

// rolloutStuck is a part of what NoteRollout says.
const rolloutStuck = " proxies are ready with the newest pod template: "

// NoteRollout says that not all proxies run what they should, and what keeps one of them.
func NoteRollout(newest, wanted int32, why string) string {
	return fmt.Sprintf("%d of %d%s%s", newest, wanted, rolloutStuck, why)
}

// proxyBehind is a part of what NoteBehind says.
const proxyBehind = " connected proxies have the newest configuration: "

// NoteBehind says that not all proxies have the newest configuration, and what one of them
// lacks.
func NoteBehind(behind, connected int, why string) string {
	return fmt.Sprintf("%d of %d%s%s", connected-behind, connected, proxyBehind, why)
}

// NoteMoving says that a Gateway has got another class, while its proxies of the former
// one serve on.
func NoteMoving(former, own, why string) string {
	return fmt.Sprintf("the proxies of its former class serve behind Service %s, until those behind Service %s can: %s", former, own, why)
}

// ProxiesNotReady says what a fleet lacks that has begun to work.
func ProxiesNotReady() string { return "its proxies are not all ready yet" }

// GatewayOnSharedFleet says which fields of a Gateway would count for all Gateways on its fleet.
func GatewayOnSharedFleet(class string, fields []string) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonInvalid, fmt.Sprintf(
		"The Gateways of GatewayClass %s share their proxies (mergeGateways), so that %s can't be said by one of them; remove it, or use another class",
		class, join(fields, " and ")))
}
