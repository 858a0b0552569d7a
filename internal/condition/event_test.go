package condition

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TestEventReason protects those who watch events: what somebody has to do about a
// certificate is one, and what is well is none.
func TestEventReason(t *testing.T) {
	end := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	well := ListenerResolvedRefs()
	missing := ListenerCertificateMissing(Missing{Kind: "Secret", Namespace: "a", Name: "b"})
	for want, conditions := range map[string][]metav1.Condition{
		"": {
			well, ListenerAccepted(), ListenerProgrammed(), RouteResolvedRefs(), GatewayAddressNotAssigned("none yet"),
			GatewayAddressesNotAssigned([]string{AddressNoneYet()}), GatewayAddressesNotAssigned([]string{AddressNotGiven("192.0.2.1", nil)}),
			{Type: "Accepted", Status: metav1.ConditionUnknown, Reason: "Pending"}, {Type: "Conflicted", Status: metav1.ConditionFalse},
			{Type: "Programmed", Status: metav1.ConditionFalse, Reason: "Invalid"},
		},
		"InvalidCertificateRef": {
			missing, ListenerNotResolved([]metav1.Condition{missing}), ListenerCertificateInvalid("a/b", "tls.key is missing"),
		},
		string(gwv1.GatewayReasonAddressesNotAssigned): {
			GatewayAddressesNotAssigned([]string{AddressNotGiven("192.0.2.1", []string{"192.0.2.2"})}),
		},
		"InvalidParameters":        {{Type: "Accepted", Status: metav1.ConditionFalse, Reason: "InvalidParameters"}},
		"AddressNotUsable":         {{Type: "Programmed", Status: metav1.ConditionFalse, Reason: "AddressNotUsable"}},
		"UnsupportedValue":         {{Type: "PartiallyInvalid", Status: metav1.ConditionTrue, Reason: "UnsupportedValue"}},
		"RolloutStuck":             {Noted(GatewayProgrammed(), NoteRollout(1, 2, "Pod a/b can't be scheduled"))},
		"ProxyBehind":              {Noted(GatewayProgrammed(), NoteBehind(1, 3, "Pod a/b has not answered the newest clusters; see its log"))},
		"Withheld":                 {GatewayWithheld(), Noted(GatewayProgrammed(), NoteWithheld())},
		"ClassDeleted":             {Noted(ClassAccepted(), NoteClassDeleted("web")), Noted(GatewayAccepted(), NoteClassDeleted("web"))},
		"RejectedByProxy":          {ListenerRefused("why", true), ListenerBindFailed(BindInUse, 80, "why"), ListenerCertificateRefused("a/b", "why", false)},
		"CertificateExpires":       {Noted(well, NoteCertificateExpires("a/b", end)), Noted(well, NoteCertificateNames("a.example", nil), NoteCertificateExpires("a/b", end))},
		"CertificateForOtherHosts": {Noted(well, NoteCertificateNames("a.example", []string{"b.example"}))},
		"CertificateExpired":       {ListenerCertificateExpired("a/b", end), ListenerNotResolved([]metav1.Condition{missing, ListenerCertificateExpired("a/b", end)})},
		"CertificateNotUsable": {
			Noted(missing, NoteCertificateKept(end, end)), Noted(ListenerCertificateInvalid("a/b", "tls.key is missing"), NoteCertificateKept(end, time.Time{})),
			Noted(GatewayClientCertificateInvalid("a/b", "tls.key is missing"), NoteCertificateKept(end, time.Time{})),
		},
	} {
		for _, c := range conditions {
			if got := EventReason(c); got != want {
				t.Errorf("%q, want %q of %s: %s", got, want, c.Type, c.Message)
			}
		}
	}
}
