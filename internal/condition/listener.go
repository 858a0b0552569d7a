package condition

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ListenerAccepted says that the listener is valid.
func ListenerAccepted() metav1.Condition {
	return yes(gwv1.ListenerConditionAccepted, gwv1.ListenerReasonAccepted, "The listener is valid")
}

// ListenerUnsupportedProtocol says that the listener's protocol is not served. Meant is one
// that is, if the text may be meant for it.
func ListenerUnsupportedProtocol(protocol, supported, meant string) metav1.Condition {
	remedy := "use " + supported
	if meant != "" {
		remedy = fmt.Sprintf("did you mean %s? Protocols are %s", meant, supported)
	}
	return no(gwv1.ListenerConditionAccepted, gwv1.ListenerReasonUnsupportedProtocol,
		fmt.Sprintf("Protocol %s is not supported; %s", protocol, remedy))
}

// ListenerUnsupportedValue says that a field of the listener asks for something
// that can't be given.
func ListenerUnsupportedValue(field, problem string) metav1.Condition {
	return no(gwv1.ListenerConditionAccepted, gwv1.ListenerReasonUnsupportedValue, field+": "+problem)
}

// ListenerFilterInvalid says that a filter before routing has a value that can't be served, with the problem that a
// rule of a route would have with it.
func ListenerFilterInvalid(problem metav1.Condition) metav1.Condition {
	return no(gwv1.ListenerConditionAccepted, gwv1.ListenerReasonUnsupportedValue,
		problem.Message+"; until then all requests of the listener are answered with 500")
}

// ListenerPortOutOfRange says that the shifted port is not a port.
func ListenerPortOutOfRange(port, offset int) metav1.Condition {
	return no(gwv1.ListenerConditionAccepted, gwv1.ListenerReasonPortUnavailable,
		fmt.Sprintf("Port %d with the port offset %d is %d, beyond 65535; choose a smaller --port-offset or another port", port, offset, port+offset))
}

// ListenerPortReserved says that the proxies need the port for themselves.
func ListenerPortReserved(port int) metav1.Condition {
	return no(gwv1.ListenerConditionAccepted, gwv1.ListenerReasonPortUnavailable,
		fmt.Sprintf("Port %d is where the proxies answer for their health; choose another port", port))
}

// ListenerBindPortTaken says which other listener is bound where this one would be.
func ListenerBindPortTaken(port, bind, other int, holder string) metav1.Condition {
	return no(gwv1.ListenerConditionAccepted, gwv1.ListenerReasonPortUnavailable,
		fmt.Sprintf("The proxies would listen for port %d on %d, and they do so for port %d of %s, which goes first; choose another port", port, bind, other, holder))
}

// ListenerPortTaken says which other Gateway on this host has the port.
func ListenerPortTaken(port int, winner string) metav1.Condition {
	return no(gwv1.ListenerConditionAccepted, gwv1.ListenerReasonPortUnavailable,
		fmt.Sprintf("Gateway %s has port %d of the same address, since the older Gateway gets it, or else the first by name; give one of the two its own spec.addresses or another port", winner, port))
}

// ListenerPortUnavailable says why a proxy could not bind the port.
func ListenerPortUnavailable(why string) metav1.Condition {
	return no(gwv1.ListenerConditionAccepted, gwv1.ListenerReasonPortUnavailable, why)
}

// ListenerNoConflicts says that the listener differs from all others.
func ListenerNoConflicts() metav1.Condition {
	return no(gwv1.ListenerConditionConflicted, gwv1.ListenerReasonNoConflicts, "No other listener claims the same traffic")
}

// ListenerHostnameConflict says which listeners claim the same port and hostname.
// It returns Accepted and Conflicted, which say the same.
func ListenerHostnameConflict(port int, hostname string, others []string) (accepted, conflicted metav1.Condition) {
	name := "no hostname"
	if hostname != "" {
		name = fmt.Sprintf("hostname %q", hostname)
	}
	return conflict(gwv1.ListenerReasonHostnameConflict,
		fmt.Sprintf("Port %d and %s are also those of %s; none of them is served until they differ", port, name, listenersNamed(others)))
}

// ListenerProtocolConflict says which listeners want another protocol on the same
// port. It returns Accepted and Conflicted, which say the same.
func ListenerProtocolConflict(port int, protocol string, others []string) (accepted, conflicted metav1.Condition) {
	return conflict(gwv1.ListenerReasonProtocolConflict,
		fmt.Sprintf("Port %d is for %s here and for another protocol in %s; none of them is served until they have different ports", port, protocol, listenersNamed(others)))
}

// ListenerHostnameTaken says who has the port and hostname of a ListenerSet's
// listener: the first one keeps them. It returns Accepted and Conflicted.
func ListenerHostnameTaken(port int, hostname, holder string) (accepted, conflicted metav1.Condition) {
	name := "no hostname"
	if hostname != "" {
		name = fmt.Sprintf("hostname %q", hostname)
	}
	return conflict(gwv1.ListenerReasonHostnameConflict,
		fmt.Sprintf("Port %d with %s belongs to %s, which goes first; choose another hostname or port", port, name, holder))
}

// ListenerProtocolTaken says who has the port of a ListenerSet's listener for
// another protocol: the first one keeps it. It returns Accepted and Conflicted.
func ListenerProtocolTaken(port int, protocol, holder string) (accepted, conflicted metav1.Condition) {
	return conflict(gwv1.ListenerReasonProtocolConflict,
		fmt.Sprintf("Port %d can't serve %s: it belongs to %s, which goes first, for another protocol; choose another port", port, protocol, holder))
}

// ListenerWholePortTaken says who has the port of a ListenerSet's listener: the first
// one keeps it. It is for protocols in which two listeners of one port can't be told
// apart. It returns Accepted and Conflicted.
func ListenerWholePortTaken(port int, protocol, holder string) (accepted, conflicted metav1.Condition) {
	return conflict(gwv1.ListenerReasonProtocolConflict,
		fmt.Sprintf("%s port %d belongs to %s, which goes first; choose another port", protocol, port, holder))
}

// ListenerPortConflict says which listeners claim the same port. It is for protocols in
// which two listeners of one port can't be told apart. It returns Accepted and
// Conflicted, which say the same.
func ListenerPortConflict(port int, protocol string, others []string) (accepted, conflicted metav1.Condition) {
	return conflict(gwv1.ListenerReasonProtocolConflict,
		fmt.Sprintf("%s port %d is also that of %s; none of them is served until they have different ports", protocol, port, listenersNamed(others)))
}

func conflict(reason gwv1.ListenerConditionReason, message string) (accepted, conflicted metav1.Condition) {
	return no(gwv1.ListenerConditionAccepted, reason, message), yes(gwv1.ListenerConditionConflicted, reason, message)
}

// ListenerHostnameNotAllowed says that the namespace of a ListenerSet may not use a
// hostname.
func ListenerHostnameNotAllowed(hostname, namespace, gateway string, allowed []string) metav1.Condition {
	what := "all hostnames"
	if hostname != "" {
		what = fmt.Sprintf("hostname %q", hostname)
	}
	return no(gwv1.ListenerConditionAccepted, gwv1.ListenerConditionReason(reasonHostnameNotAllowed),
		fmt.Sprintf("Namespace %s may not use %s on Gateway %s%s", namespace, what, gateway, mayUse(allowed)))
}

// Overlaps are the TLS listeners of the port that have hostnames that overlap.
type Overlaps struct {
	Listeners []string // of the same object
	Gateway   string   // whose listeners do, where the listener is a ListenerSet's
	Sets      bool     // whether listeners of ListenerSets do, other than its own
	Fleet     bool     // whether listeners of other Gateways on the fleet do
}

// Some reports whether there are any.
func (o Overlaps) Some() bool { return len(o.Listeners) > 0 || o.Gateway != "" || o.Sets || o.Fleet }

// named doesn't name ListenerSets: those of other teams are not for everyone to know.
func (o Overlaps) named() string {
	var all []string
	if len(o.Listeners) > 0 {
		all = append(all, listenersNamed(o.Listeners))
	}
	if o.Gateway != "" {
		all = append(all, "listeners of Gateway "+o.Gateway)
	}
	if o.Sets {
		all = append(all, "listeners of ListenerSets")
	}
	if o.Fleet {
		all = append(all, "listeners of other Gateways on the fleet")
	}
	return strings.Join(all, " and ")
}

// ListenerOverlappingTLS says which TLS listeners of the port have a hostname that
// overlaps. It is set only where it is true.
func ListenerOverlappingTLS(others Overlaps) metav1.Condition {
	return yes(gwv1.ListenerConditionOverlappingTLSConfig, gwv1.ListenerReasonOverlappingHostnames,
		fmt.Sprintf("The hostname overlaps with %s; requests that reuse a connection for a host of another listener are answered with 421", others.named()))
}

// ListenerOverlappingBytes is ListenerOverlappingTLS of a listener that forwards
// bytes without seeing requests.
func ListenerOverlappingBytes(others Overlaps) metav1.Condition {
	return yes(gwv1.ListenerConditionOverlappingTLSConfig, gwv1.ListenerReasonOverlappingHostnames,
		fmt.Sprintf("The hostname overlaps with %s; requests that reuse a connection for a host of another listener reach the backends of this one", others.named()))
}

// ListenerResolvedRefs says that every reference of the listener leads to
// something usable.
func ListenerResolvedRefs() metav1.Condition {
	return yes(gwv1.ListenerConditionResolvedRefs, gwv1.ListenerReasonResolvedRefs, "All references are resolved")
}

// ListenerNotResolved gathers several problems with references under the reason of
// the first.
func ListenerNotResolved(problems []metav1.Condition) metav1.Condition {
	return no(gwv1.ListenerConditionResolvedRefs, reasonOf(problems), messages(problems))
}

// messages are those of several conditions.
func messages(problems []metav1.Condition) string {
	parts := make([]string, len(problems))
	for i, p := range problems {
		parts[i] = p.Message
	}
	return join(parts, "; ")
}

// ListenerNoCertificate says that an HTTPS listener names no certificate.
func ListenerNoCertificate() metav1.Condition {
	return invalidCertificate("tls.certificateRefs is empty; name a Secret with tls.crt and tls.key")
}

// ListenerCertificateKind says that a certificateRef names something other than a
// Secret.
func ListenerCertificateKind(kind, name string) metav1.Condition {
	return invalidCertificate(fmt.Sprintf("tls.certificateRefs names %s %q; only Secrets can hold certificates", kind, name))
}

// ListenerCertificateMissing says that a Secret does not exist.
func ListenerCertificateMissing(secret Missing) metav1.Condition {
	return no(gwv1.ListenerConditionResolvedRefs, secret.reason(string(gwv1.ListenerReasonInvalidCertificateRef)), secret.text("tls.certificateRefs"))
}

// ListenerCertificateInvalid says what is wrong with what a Secret holds.
func ListenerCertificateInvalid(secret, problem string) metav1.Condition {
	return invalidCertificate(fmt.Sprintf("Secret %s: %s", secret, problem))
}

func invalidCertificate(message string) metav1.Condition {
	return no(gwv1.ListenerConditionResolvedRefs, gwv1.ListenerReasonInvalidCertificateRef, message)
}

// ListenerRefNotPermitted says that a Secret of another namespace may not be
// referred to.
func ListenerRefNotPermitted(secret string, g Grant) metav1.Condition {
	return no(gwv1.ListenerConditionResolvedRefs, gwv1.ListenerReasonRefNotPermitted, g.refused("Secret "+secret))
}

// ListenerInvalidRouteKinds says which of allowedRoutes.kinds can't attach.
func ListenerInvalidRouteKinds(protocol string, kinds []string, supported string) metav1.Condition {
	can := "no kind of route can"
	if supported != "" {
		can = "only " + supported + " can"
	}
	return no(gwv1.ListenerConditionResolvedRefs, gwv1.ListenerReasonInvalidRouteKinds,
		fmt.Sprintf("allowedRoutes.kinds has %s; %s attach to a listener of protocol %s", quoted(kinds), can, protocol))
}

// ListenerProgrammed says that a proxy serves the listener.
func ListenerProgrammed() metav1.Condition {
	return yes(gwv1.ListenerConditionProgrammed, gwv1.ListenerReasonProgrammed, "A proxy has acknowledged the configuration")
}

// ListenerPending says what the listener waits for.
func ListenerPending(what string) metav1.Condition {
	return no(gwv1.ListenerConditionProgrammed, gwv1.ListenerReasonPending, what)
}

// ListenerInvalid says why the listener is not programmed.
func ListenerInvalid(why string) metav1.Condition {
	return no(gwv1.ListenerConditionProgrammed, gwv1.ListenerReasonInvalid, why)
}

// ListenerNotProgrammed says that a listener with the given problem is not
// programmed because of it. Conflicts keep their reason, as the ListenerSet tests
// of the conformance suite want it.
func ListenerNotProgrammed(cause metav1.Condition) metav1.Condition {
	switch gwv1.ListenerConditionReason(cause.Reason) {
	case gwv1.ListenerReasonHostnameConflict, gwv1.ListenerReasonProtocolConflict:
		return no(gwv1.ListenerConditionProgrammed, cause.Reason, cause.Message)
	default:
		return ListenerInvalid(cause.Message)
	}
}
