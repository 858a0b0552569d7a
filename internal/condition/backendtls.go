package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// PolicyAccepted says that a BackendTLSPolicy is in force.
func PolicyAccepted() metav1.Condition {
	return yes(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonAccepted, "The policy is in force")
}

// PolicyInvalid says which field of the policy can't be used.
func PolicyInvalid(field, problem string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonInvalid, field+" "+problem)
}

// PolicyUnknownOption says that an option of ours does not exist.
func PolicyUnknownOption(key string) metav1.Condition {
	return PolicyInvalid("spec.options", fmt.Sprintf("has %q, which is no option of a BackendTLSPolicy; remove it", key))
}

// PolicyNoSystemAuthorities says that the system's authorities are not known.
func PolicyNoSystemAuthorities() metav1.Condition {
	return PolicyInvalid("spec.validation.wellKnownCACertificates",
		"asks for the system's authorities, and there is no file with them on this host; install the package ca-certificates, or set SSL_CERT_FILE, and start Gatehouse again")
}

// PolicyNoValidAuthority says that none of the references to authorities can be
// used, for the reason that ResolvedRefs gives.
func PolicyNoValidAuthority(resolved metav1.Condition) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.BackendTLSPolicyReasonNoValidCACertificate,
		"No certificate of an authority is left to trust: "+resolved.Message)
}

// PolicyConflicted says which policy takes precedence over this one for a target.
func PolicyConflicted(target, winner string) metav1.Condition {
	return no(gwv1.PolicyConditionAccepted, gwv1.PolicyReasonConflicted,
		fmt.Sprintf("BackendTLSPolicy %s targets %s too, and takes precedence; remove one of the two, or name ports in sectionName", winner, target))
}

// PolicyResolvedRefs says that every reference of the policy can be used.
func PolicyResolvedRefs() metav1.Condition {
	return yes(gwv1.BackendTLSPolicyConditionResolvedRefs, gwv1.BackendTLSPolicyReasonResolvedRefs, "All references are resolved")
}

// PolicyNotResolved gathers the problems of references under the reason of the
// first.
func PolicyNotResolved(problems []metav1.Condition) metav1.Condition {
	return no(gwv1.BackendTLSPolicyConditionResolvedRefs, problems[0].Reason, messages(problems))
}

func authorityRef(reason gwv1.PolicyConditionReason, index int, message string) metav1.Condition {
	return no(gwv1.BackendTLSPolicyConditionResolvedRefs, reason,
		fmt.Sprintf("spec.validation.caCertificateRefs[%d]: %s", index, message))
}

// PolicyAuthorityKind says that a kind can't hold certificates of authorities.
func PolicyAuthorityKind(index int, kind, name string) metav1.Condition {
	return authorityRef(gwv1.BackendTLSPolicyReasonInvalidKind, index,
		fmt.Sprintf("%s %q can't hold certificates of authorities; name a ConfigMap, a Secret or a ClusterTrustBundle", kind, name))
}

// Unread says why no objects of a kind are read; zero where they are.
type Unread struct{ Kind, Why string }

// PolicyAuthorityMissing says that an object with certificates does not exist, or that
// none of its kind is read.
func PolicyAuthorityMissing(index int, object string, unread Unread) metav1.Condition {
	text := object + " does not exist; create it or correct the reference"
	if unread != (Unread{}) {
		text = unreadAuthority(object, unread)
	}
	return authorityRef(gwv1.BackendTLSPolicyReasonInvalidCACertificateRef, index, text)
}

// unreadAuthority says that it is not known whether an object exists.
func unreadAuthority(object string, unread Unread) string {
	return fmt.Sprintf("%s can't be used, since no %ss are read: %s; name a ConfigMap or a Secret instead, or see to it that they are", object, unread.Kind, unread.Why)
}

// PolicyAuthorityInvalid says what is wrong with an object's certificates.
func PolicyAuthorityInvalid(index int, object, problem string) metav1.Condition {
	return authorityRef(gwv1.BackendTLSPolicyReasonInvalidCACertificateRef, index,
		fmt.Sprintf("%s can't be used: %s", object, problem))
}

// PolicyAuthoritiesRefused says that a proxy doesn't take the certificates.
func PolicyAuthoritiesRefused(message string, keepsOld bool) metav1.Condition {
	return no(gwv1.BackendTLSPolicyConditionResolvedRefs, gwv1.BackendTLSPolicyReasonInvalidCACertificateRef,
		fmt.Sprintf("The proxy refuses the authorities' certificates: %s%s", message, policyConsequence(keepsOld)))
}

func policyConsequence(keepsOld bool) string {
	if keepsOld {
		return "; the last good ones stay in force"
	}
	return "; nothing is sent to the backends"
}

// ReasonBackendPolicyRefused is the reason of a route's ResolvedRefs where the
// BackendTLSPolicy of a backend can't be met.
const ReasonBackendPolicyRefused gwv1.RouteConditionReason = "InvalidBackendTLSPolicy"

// BackendPolicyRefused says that a Service is not spoken to because its policy
// can't be met. The name of the policy is empty where the reader is not told.
func BackendPolicyRefused(field, service, policy, why string) metav1.Condition {
	if policy != "" {
		policy = " " + policy
	}
	return unresolved(ReasonBackendPolicyRefused, field,
		fmt.Sprintf("%s is not spoken to, since its BackendTLSPolicy%s can't be met: %s", service, policy, why))
}

// BackendNeedsPolicy says that a Service port speaks TLS and nothing says whom to
// trust there.
func BackendNeedsPolicy(field, service string, port int32, protocol string) metav1.Condition {
	return unresolved(gwv1.RouteReasonUnsupportedProtocol, field,
		fmt.Sprintf("port %d of %s has appProtocol %q, and no BackendTLSPolicy says how to verify it; create one for it", port, service, protocol))
}

// GatewayClientCertificateKind says that a kind can't hold a client certificate.
func GatewayClientCertificateKind(kind, name string) metav1.Condition {
	return clientCertificate(gwv1.GatewayReasonInvalidClientCertificateRef,
		fmt.Sprintf("%s %q can't hold a certificate; name a Secret", kind, name))
}

// GatewayClientCertificateMissing says that a Secret does not exist.
func GatewayClientCertificateMissing(secret string) metav1.Condition {
	return clientCertificate(gwv1.GatewayReasonInvalidClientCertificateRef,
		fmt.Sprintf("Secret %s does not exist; create it or correct the reference", secret))
}

// GatewayClientCertificateInvalid says what is wrong with a Secret.
func GatewayClientCertificateInvalid(secret, problem string) metav1.Condition {
	return clientCertificate(gwv1.GatewayReasonInvalidClientCertificateRef,
		fmt.Sprintf("Secret %s can't be used: %s", secret, problem))
}

// GatewayClientCertificateNotPermitted says that a Secret of another namespace may
// not be referred to.
func GatewayClientCertificateNotPermitted(secret string, g Grant) metav1.Condition {
	return clientCertificate(gwv1.GatewayReasonRefNotPermitted, g.refused("Secret "+secret))
}

// GatewayClientCertificateRefused says that a proxy doesn't take the certificate.
func GatewayClientCertificateRefused(secret, message string) metav1.Condition {
	return clientCertificate(gwv1.GatewayReasonInvalidClientCertificateRef,
		fmt.Sprintf("The proxy refuses the certificate of Secret %s: %s", secret, message))
}

func clientCertificate(reason gwv1.GatewayConditionReason, message string) metav1.Condition {
	return no(gwv1.GatewayConditionResolvedRefs, reason,
		"spec.tls.backend.clientCertificateRef: "+message+". Backends are spoken to without a client certificate")
}

// GatewayNotResolved joins two things that ResolvedRefs has to say, under the
// reason of the first.
func GatewayNotResolved(first, second metav1.Condition) metav1.Condition {
	return no(gwv1.GatewayConditionResolvedRefs, gwv1.GatewayConditionReason(first.Reason), first.Message+". "+second.Message)
}
