package condition

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayConditionReady is the condition of Gateways that have a blueprint: whether all objects
// that it makes of them are ready.
const GatewayConditionReady gwv1.GatewayConditionType = "gatehouse.dev/Ready"

// BlueprintAccepted says that a blueprint is in use, or could be.
func BlueprintAccepted() metav1.Condition {
	return yes(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonAccepted, "The blueprint is valid")
}

// BlueprintInvalid says what is wrong with a blueprint.
func BlueprintInvalid(problems []string) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonInvalid,
		"The blueprint can't be used, and objects that it has made stay as they are: "+strings.Join(problems, "; "))
}

// BlueprintOld says what is wrong with a blueprint of which an earlier generation is in force.
func BlueprintOld(generation int64, problems []string) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonInvalid,
		fmt.Sprintf("The blueprint can't be used, and Gateways go on with its generation %d: %s", generation, strings.Join(problems, "; ")))
}

// NoteBlueprintOld says that a Gateway goes on with an earlier generation of its blueprint.
func NoteBlueprintOld(blueprint string, generation int64) string {
	return fmt.Sprintf("Its objects follow generation %d of GatewayBlueprint %s: the newest one can't be used, and its conditions say why", generation, blueprint)
}

// ListenerWaitsForObjects says that what serves a Gateway is not there yet.
func ListenerWaitsForObjects() string { return "Waiting for the objects of the Gateway's blueprint" }

// AddressNotRendered says why a Gateway has no address, whose blueprint says where addresses come from.
func AddressNotRendered(why string) string {
	return "The Gateway's blueprint has no address for it: " + why
}

// ValuesAccepted says that values are in force.
func ValuesAccepted() metav1.Condition {
	return yes(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonAccepted, "The values are in force where their target has a blueprint")
}

// ValuesInvalid says why values are not in force for a Gateway.
func ValuesInvalid(gateway, why string) metav1.Condition {
	return no(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonInvalid,
		fmt.Sprintf("The values are not in force for Gateway %s: %s", gateway, why))
}

// GatewayChildrenReady says that all objects of a Gateway's blueprint are ready.
func GatewayChildrenReady(n int) metav1.Condition {
	return yes(GatewayConditionReady, gwv1.GatewayConditionReason("Ready"), fmt.Sprintf("All %d objects of the blueprint are ready", n))
}

// GatewayChildrenNotReady says which objects of a Gateway's blueprint are not ready, and why.
func GatewayChildrenNotReady(why []string) metav1.Condition {
	return no(GatewayConditionReady, gwv1.GatewayReasonPending, strings.Join(why, "; "))
}

// NoteChildren says which objects of its blueprint a Gateway lacks, and whether a policy is among them.
func NoteChildren(why []string, unguarded bool) string {
	var notes []string
	if len(why) > 0 {
		notes = append(notes, fmt.Sprintf("%d objects of its blueprint are missing: %s", len(why), strings.Join(why, "; ")))
	}
	if unguarded {
		notes = append(notes, "A policy that its blueprint makes is not there. Until it is, proxies are told nothing new but endpoints, and those that have nothing serve nothing")
	}
	return strings.Join(notes, ". ")
}
