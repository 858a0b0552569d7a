package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	poolsv1 "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// pickerField is where an InferencePool names who picks endpoints.
const pickerField = "spec.endpointPickerRef"

// PoolAccepted says that an InferencePool can be a backend of a Gateway's routes.
func PoolAccepted() metav1.Condition {
	return yes(poolsv1.InferencePoolConditionAccepted, poolsv1.InferencePoolReasonAccepted, "The pool is a backend of routes of this Gateway")
}

// PoolWithoutPicker says that an InferencePool names nobody who picks endpoints.
func PoolWithoutPicker() metav1.Condition {
	return no(poolsv1.InferencePoolConditionAccepted, poolsv1.InferencePoolReasonEndpointPickerRefMissing,
		pickerField+" is missing; name the Service of an endpoint picker, or have routes name a Service in place of the pool")
}

// PoolResolvedRefs says that the endpoint picker of an InferencePool can be asked.
func PoolResolvedRefs() metav1.Condition {
	return yes(poolsv1.InferencePoolConditionResolvedRefs, poolsv1.InferencePoolReasonResolvedRefs, "All references are resolved")
}

// PoolPickerInvalid says why the endpoint picker of an InferencePool can't be asked, and what becomes of requests.
func PoolPickerInvalid(problem string, mode poolsv1.EndpointPickerFailureMode) metav1.Condition {
	result := "requests are answered with 500"
	if mode == poolsv1.EndpointPickerFailOpen {
		result = "requests go to any ready endpoint, by failureMode FailOpen"
	}
	return no(poolsv1.InferencePoolConditionResolvedRefs, poolsv1.InferencePoolReasonInvalidExtensionRef, problem+"; "+result)
}

// PickerKind says that an endpoint picker is no Service.
func PickerKind(kind string) string {
	return fmt.Sprintf("%s: kind %q is not supported; name a Service", pickerField, kind)
}

// PickerExternalName says that an endpoint picker's Service has no endpoints in the cluster, which the specification forbids.
func PickerExternalName(service string) string {
	return fmt.Sprintf("%s: Service %s is of type ExternalName, which can't be an endpoint picker; use one with endpoints", pickerField, service)
}

// ReasonPoolRefused is the reason of a route's ResolvedRefs where an InferencePool can't be used.
const ReasonPoolRefused gwv1.RouteConditionReason = "InvalidInferencePool"

// PoolRefused says that an InferencePool, given as "InferencePool ns/name", can't be used, for the reason that its own status
// gives.
func PoolRefused(field, pool, why string) metav1.Condition {
	return unresolved(ReasonPoolRefused, field, fmt.Sprintf("%s can't be used: %s", pool, why))
}

// PoolOnlyBackend says that an InferencePool is referred to where nobody could ask its endpoint picker.
func PoolOnlyBackend(field, pool string) metav1.Condition {
	return unresolved(gwv1.RouteReasonInvalidKind, field,
		fmt.Sprintf("%s can be a backend of rules of HTTPRoutes alone; name a Service here", pool))
}

// PoolSession says that sessions can't persist where an endpoint picker chooses.
func PoolSession(field string) metav1.Condition {
	return RouteUnsupportedValue(field, "requests to an InferencePool go where its endpoint picker says, so that no session can keep them at one endpoint; remove it")
}
