package condition

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The conditions below are about the validation of clients' certificates. The
// references are in the Gateway. The listeners for which they matter say what is wrong
// with them.

// ListenerAuthorityKind says that a caCertificateRef names something that holds no
// certificates of authorities.
func ListenerAuthorityKind(kind, name string) metav1.Condition {
	return no(gwv1.ListenerConditionResolvedRefs, gwv1.ListenerReasonInvalidCACertificateKind,
		fmt.Sprintf("caCertificateRefs in the Gateway's spec.tls.frontend names %s %q; only ConfigMaps, Secrets and ClusterTrustBundles can hold certificates of authorities", kind, name))
}

// ListenerAuthorityMissing says that an object with certificates of authorities
// does not exist, or that none of its kind is read.
func ListenerAuthorityMissing(ref string, unread Unread) metav1.Condition {
	if unread != (Unread{}) {
		return invalidAuthority("caCertificateRefs in the Gateway's spec.tls.frontend: " + unreadAuthority(ref, unread))
	}
	return invalidAuthority(ref + " does not exist; create it or correct caCertificateRefs in the Gateway's spec.tls.frontend")
}

// ListenerAuthorityInvalid says what is wrong with what an object holds.
func ListenerAuthorityInvalid(ref, problem string) metav1.Condition {
	return invalidAuthority(ref + ": " + problem)
}

func invalidAuthority(message string) metav1.Condition {
	return no(gwv1.ListenerConditionResolvedRefs, gwv1.ListenerReasonInvalidCACertificateRef, message)
}

// ListenerAuthorityNotPermitted says that an object of another namespace may not be
// referred to.
func ListenerAuthorityNotPermitted(ref string, g Grant) metav1.Condition {
	return no(gwv1.ListenerConditionResolvedRefs, gwv1.ListenerReasonRefNotPermitted, g.refused(ref))
}

// ListenerAuthoritiesOfGateway says that references of a Gateway can't be used, to who may
// not know what they refer to.
func ListenerAuthoritiesOfGateway(problems []metav1.Condition) metav1.Condition {
	return no(gwv1.ListenerConditionResolvedRefs, problems[0].Reason,
		fmt.Sprintf("%d of the caCertificateRefs in the Gateway's spec.tls.frontend can't be used; its owner can mend that", len(problems)))
}

// ListenerNoValidAuthority says that there is nothing to check clients' certificates
// with.
func ListenerNoValidAuthority(problems []metav1.Condition) metav1.Condition {
	return no(gwv1.ListenerConditionAccepted, gwv1.ListenerReasonNoValidCACertificate,
		"Certificates of clients are to be checked and no authority to check them with can be used, so nobody is let in: "+messages(problems))
}

// ListenerAuthoritiesRefused says that a proxy refuses the authorities that clients'
// certificates are checked with.
func ListenerAuthoritiesRefused(refs []string, envoy string, keepsOld bool) metav1.Condition {
	return ListenerInvalid(refusal(Refusal{
		Subject: "the certificates of authorities in " + join(refs, ", "), Envoy: envoy, KeepsOld: keepsOld,
	}))
}

// GatewayInsecureFrontend says that clients are let in without a valid certificate.
// It is set only where it is true.
func GatewayInsecureFrontend() metav1.Condition {
	return yes(gwv1.GatewayConditionInsecureFrontendValidationMode, gwv1.GatewayReasonConfigurationChanged,
		"spec.tls.frontend has mode AllowInsecureFallback: clients without a valid certificate are let in; use AllowValidOnly to keep them out")
}
