package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
)

// xBackendInvalid is the reason of an XBackend that can't be used; the API has
// none yet.
const xBackendInvalid gwxv1alpha1.BackendConditionReason = "Invalid"

// XBackendAccepted says that an XBackend can be used.
func XBackendAccepted() metav1.Condition {
	return yes(gwxv1alpha1.BackendConditionAccepted, gwxv1alpha1.BackendReasonAccepted, "The backend is valid")
}

// XBackendInvalid says which field of an XBackend can't be used.
func XBackendInvalid(field, problem string) metav1.Condition {
	return no(gwxv1alpha1.BackendConditionAccepted, xBackendInvalid, field+" "+problem)
}

// XBackendSelector says that endpoints are not looked for by label.
func XBackendSelector() metav1.Condition {
	return XBackendInvalid("spec.type", "EndpointSelector is not supported; let routes name a Service that selects the endpoints")
}

// XBackendTLS says why an XBackend's TLS can't be used.
func XBackendTLS(problem string) metav1.Condition {
	return XBackendInvalid("spec.tls", "can't be used: "+problem)
}

// XBackendNotFound says that an XBackend does not exist.
func XBackendNotFound(field, name string) metav1.Condition {
	return unresolved(gwv1.RouteReasonBackendNotFound, field,
		fmt.Sprintf("XBackend %s does not exist; create it or correct the reference; without --experimental, none are read", name))
}

// XBackendElsewhere says that an XBackend is of another namespace than the route.
func XBackendElsewhere(field, name string) metav1.Condition {
	return unresolved(gwv1.RouteReasonRefNotPermitted, field,
		fmt.Sprintf("XBackend %s is in another namespace, which no ReferenceGrant permits; create one in the route's namespace", name))
}

// XBackendProtocol says that an XBackend speaks what routes of a kind can't use.
func XBackendProtocol(field, name, protocol, routeKind string) metav1.Condition {
	return unresolved(gwv1.RouteReasonUnsupportedProtocol, field,
		fmt.Sprintf("XBackend %s has protocol %q, to which nothing of a route of kind %s can be sent", name, protocol, routeKind))
}

// ReasonXBackendRefused is the reason of a route's ResolvedRefs where an XBackend
// can't be used.
const ReasonXBackendRefused gwv1.RouteConditionReason = "InvalidXBackend"

// XBackendRefused says that an XBackend can't be used, for the reason that its own
// Accepted condition gives.
func XBackendRefused(field, name, why string) metav1.Condition {
	return unresolved(ReasonXBackendRefused, field,
		fmt.Sprintf("XBackend %s can't be used: %s", name, why))
}
