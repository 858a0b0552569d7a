package condition

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Messages with what a proxy says have one of these parts.
const (
	envoyRefuses = "Envoy refuses "
	envoySays    = ". Envoy says: "
)

// Messages about certificates have these.
const (
	certificateExpired   = "the certificate expired at "
	certificateExpires   = " expires at "
	certificateKept      = "its last good certificate stays in force"
	certificateForOthers = "clients will refuse the certificates for "
)

// Messages about a class that has been deleted, and about its Gateways, have this.
const classDeleted = " is being deleted: it serves until its last Gateway is gone, and then has to be created again, which Gatehouse does where its installation has that class"

// badTypes are the types of conditions whose True is bad news.
var badTypes = map[string]bool{"Conflicted": true, "PartiallyInvalid": true, "OverlappingTLSConfig": true}

// Good reports whether a condition says that all is well.
func Good(c metav1.Condition) bool {
	if badTypes[c.Type] {
		return c.Status == metav1.ConditionFalse
	}
	return c.Status == metav1.ConditionTrue
}

// EventReason is the reason of the event that a condition is worth, which is one that a
// person must do something about; empty for none. The same message is worth one event.
func EventReason(c metav1.Condition) string {
	if c.Status == metav1.ConditionFalse && (strings.Contains(c.Message, envoyRefuses) || strings.Contains(c.Message, envoySays)) {
		return "RejectedByProxy"
	}
	if c.Type == string(gwv1.GatewayConditionProgrammed) && strings.Contains(c.Message, rolloutStuck) {
		return "RolloutStuck"
	}
	if c.Type == string(gwv1.GatewayConditionProgrammed) && strings.Contains(c.Message, proxyBehind) {
		return "ProxyBehind"
	}
	if c.Type == string(gwv1.GatewayConditionProgrammed) && strings.Contains(c.Message, withheld) {
		return reasonWithheld
	}
	if c.Type == string(gwv1.PolicyConditionAccepted) && strings.Contains(c.Message, keySetKept) {
		return "KeysNotFetched"
	}
	if Good(c) && DeletedClass(c) != "" {
		return "ClassDeleted"
	}
	if c.Type == string(gwv1.ListenerConditionResolvedRefs) {
		if reason := certificateReason(c); reason != "" {
			return reason
		}
	}
	switch {
	case Good(c), c.Status == metav1.ConditionUnknown:
		return ""
	case c.Type == string(gwv1.GatewayConditionAddressesAssigned) && awaited(c.Message):
		return "" // a Service has its address seconds after it is made
	case c.Type == string(gwv1.GatewayConditionProgrammed) && c.Reason != string(gwv1.GatewayReasonAddressNotUsable):
		return "" // it waits, or another condition says why
	}
	return c.Reason
}

// certificateReason is EventReason for what is said of certificates.
func certificateReason(c metav1.Condition) string {
	for _, about := range []struct{ part, reason string }{ // the worst first
		{certificateExpired, "CertificateExpired"},
		{certificateKept, "CertificateNotUsable"},
		{certificateExpires, "CertificateExpires"},
		{certificateForOthers, "CertificateForOtherHosts"},
	} {
		if strings.Contains(c.Message, about.part) {
			return about.reason
		}
	}
	return ""
}

// GatewayNotes is what a Programmed condition of a Gateway says beside that all is well;
// empty for nothing, and where not all is well.
func GatewayNotes(c metav1.Condition) string {
	notes, ok := strings.CutPrefix(c.Message, GatewayProgrammed().Message+"; ")
	if !ok {
		return ""
	}
	return notes
}

// ListenerNotes is what a ResolvedRefs condition of a listener says beside that all is
// well; empty for nothing, and where not all is well.
func ListenerNotes(c metav1.Condition) string {
	notes, _ := strings.CutPrefix(c.Message, ListenerResolvedRefs().Message+"; ")
	if notes == c.Message {
		return ""
	}
	return notes
}
