package condition

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// RouteAccepted says that at least one listener of the parent takes the route.
func RouteAccepted() metav1.Condition {
	return yes(gwv1.RouteConditionAccepted, gwv1.RouteReasonAccepted, "The route is attached")
}

// RouteNoGateway says that the parent does not exist.
func RouteNoGateway(gateway Missing) metav1.Condition { return routeNoParent(gateway) }

func routeNoParent(parent Missing) metav1.Condition {
	return no(gwv1.RouteConditionAccepted, parent.reason(string(gwv1.RouteReasonNoMatchingParent)), parent.text("parentRefs"))
}

// RouteGatewayNotServed says that no controller serves the parent, and why.
func RouteGatewayNotServed(gateway, why string) metav1.Condition {
	return no(gwv1.RouteConditionAccepted, gwv1.RouteReasonNoMatchingParent,
		fmt.Sprintf("Gateway %s is not served: %s", gateway, why))
}

// RouteNoListenerSet says that the parent does not exist.
func RouteNoListenerSet(set Missing) metav1.Condition { return routeNoParent(set) }

// RouteSetNotAttached says that the parent is a ListenerSet that is not part of a
// Gateway, and why.
func RouteSetNotAttached(set, why string) metav1.Condition {
	return no(gwv1.RouteConditionAccepted, gwv1.RouteReasonNoMatchingParent,
		fmt.Sprintf("ListenerSet %s is not attached to its Gateway: %s", set, why))
}

// RouteNoListener says that the parent, given as "Gateway ns/name", has no listener
// such as the parentRef asks for; wanted and have describe listeners.
func RouteNoListener(parent, wanted string, have []string) metav1.Condition {
	text := fmt.Sprintf("%s has no listener %s", parent, wanted)
	if len(have) > 0 {
		text += "; it has " + join(have, ", ")
	}
	return no(gwv1.RouteConditionAccepted, gwv1.RouteReasonNoMatchingParent, text)
}

// RouteNotAllowed says why no listener that the parentRef selects lets the route
// attach, each reason naming a listener. Namespace is the route's where that is a reason, and
// else empty.
func RouteNotAllowed(parent string, reasons []string, namespace string) metav1.Condition {
	text := fmt.Sprintf("%s lets no such route attach: %s; change allowedRoutes of the listener", parent, join(reasons, "; "))
	if namespace != "" {
		text += ", for example: " + AllowRoutes(namespace)
	}
	return no(gwv1.RouteConditionAccepted, gwv1.RouteReasonNotAllowedByListeners, text)
}

// RouteListenersNotServed says that no listener that the parentRef selects can be served,
// each reason naming one. What is wrong is told there.
func RouteListenersNotServed(parent string, reasons []string) metav1.Condition {
	return no(gwv1.RouteConditionAccepted, gwv1.RouteConditionReason(ReasonWaiting),
		fmt.Sprintf("%s serves nothing there: %s", parent, join(reasons, "; ")))
}

// RouteNoHostname says that the route's hostnames have nothing in common with the
// listeners'.
func RouteNoHostname(parent string, hostnames, listeners []string) metav1.Condition {
	return no(gwv1.RouteConditionAccepted, gwv1.RouteReasonNoMatchingListenerHostname,
		fmt.Sprintf("The hostnames %s match no listener of %s: %s", quoted(hostnames), parent, join(listeners, ", ")))
}

// reasonHostnameNotAllowed is the reason of listeners and routes with a hostname that
// their namespace may not use.
const reasonHostnameNotAllowed = "HostnameNotAllowed"

// RouteHostnamesNotAllowed says that the route's namespace may use none of its hostnames
// on the Gateway, or on the Gateway of the ListenerSet, that is its parent.
func RouteHostnamesNotAllowed(parent, namespace string, hosts, allowed []string) metav1.Condition {
	return no(gwv1.RouteConditionAccepted, gwv1.RouteConditionReason(reasonHostnameNotAllowed),
		fmt.Sprintf("Namespace %s may not use %s at %s%s", namespace, quoted(hosts), parent, mayUse(allowed)))
}

// NoteHostnamesBarred says which of a route's hostnames its namespace may not use.
func NoteHostnamesBarred(namespace string, hosts, allowed []string) string {
	return fmt.Sprintf("it is not served for %s, which namespace %s may not use%s", quoted(hosts), namespace, mayUse(allowed))
}

// mayUse says which hostnames a namespace may use, and who decides it.
func mayUse(allowed []string) string {
	what := "no hostname"
	if len(allowed) > 0 {
		what = "only " + quoted(allowed)
	}
	return fmt.Sprintf(": the parameters of the Gateway's class (allow.hostnames) let it use %s", what)
}

// RouteUnsupportedValue says which field of the route can't be served.
func RouteUnsupportedValue(field, problem string) metav1.Condition {
	return no(gwv1.RouteConditionAccepted, gwv1.RouteReasonUnsupportedValue, field+": "+problem)
}

// RouteIncompatibleFilters says which filters of a rule exclude each other.
func RouteIncompatibleFilters(field, problem string) metav1.Condition {
	return no(gwv1.RouteConditionAccepted, gwv1.RouteReasonIncompatibleFilters, field+": "+problem)
}

// RoutePartiallyInvalid says which rules are not served, each part naming a rule
// and why. The prefix is the specification's.
func RoutePartiallyInvalid(rules []string) metav1.Condition {
	return yes(gwv1.RouteConditionPartiallyInvalid, gwv1.RouteReasonUnsupportedValue,
		"Dropped Rule: "+join(rules, "; "))
}

// RouteResolvedRefs says that every reference of the route leads to something
// usable.
func RouteResolvedRefs() metav1.Condition {
	return yes(gwv1.RouteConditionResolvedRefs, gwv1.RouteReasonResolvedRefs, "All references are resolved")
}

// RouteNotResolved gathers several problems with references under the reason of
// the first that is a cause, each message once.
func RouteNotResolved(problems []metav1.Condition) metav1.Condition {
	var messages []string
	seen := map[string]bool{}
	for _, p := range problems {
		if !seen[p.Message] {
			seen[p.Message] = true
			messages = append(messages, p.Message)
		}
	}
	return no(gwv1.RouteConditionResolvedRefs, reasonOf(problems), join(messages, "; "))
}

// BackendKind says that a reference names a kind that can't be a backend.
func BackendKind(field, kind, name string) metav1.Condition {
	return unresolved(gwv1.RouteReasonInvalidKind, field,
		fmt.Sprintf("%s %q can't be a backend; name a Service", kind, name))
}

// reasonOf is the reason of several problems together: the first that doesn't only follow
// from what is told elsewhere.
func reasonOf(problems []metav1.Condition) string {
	for _, p := range problems {
		if p.Reason != ReasonWaiting {
			return p.Reason
		}
	}
	return ReasonWaiting
}

// BackendNotFound says that a Service does not exist.
func BackendNotFound(field string, service Missing) metav1.Condition {
	return unresolved(gwv1.RouteConditionReason(service.reason(string(gwv1.RouteReasonBackendNotFound))), field, service.text("the reference"))
}

// IsBackendMissing reports whether a problem is that the backend does not exist.
func IsBackendMissing(problem metav1.Condition) bool {
	return problem.Reason == string(gwv1.RouteReasonBackendNotFound) || problem.Reason == ReasonWaiting
}

// BackendNoPort says that a reference to a backend, given as "Service ns/name", names no port.
func BackendNoPort(field, service string) metav1.Condition {
	return unresolved(gwv1.RouteReasonBackendNotFound, field,
		fmt.Sprintf("port is missing; name a port of %s", service))
}

// BackendPortProtocol says that a port of a Service is for another protocol than the route needs.
func BackendPortProtocol(field, service string, port int32, protocol string) metav1.Condition {
	other := "TCP"
	if protocol == other {
		other = "UDP"
	}
	return unresolved(gwv1.RouteReasonBackendNotFound, field,
		fmt.Sprintf("port %d of %s is for %s only, and the route needs %s; add a port of the same number with protocol: %s", port, service, other, protocol, protocol))
}

// BackendPortNotFound says that a Service has no such port; ports are those that
// it has for the protocol.
func BackendPortNotFound(field, service string, port int32, protocol string, ports []string) metav1.Condition {
	have := "no ports"
	if len(ports) > 0 {
		have = strings.Join(ports, ", ")
	}
	return unresolved(gwv1.RouteReasonBackendNotFound, field,
		fmt.Sprintf("%s has no %s port %d; it has %s", service, protocol, port, have))
}

// BackendExternalNameMissing says that a Service of type ExternalName names no
// host.
func BackendExternalNameMissing(field, service string) metav1.Condition {
	return unresolved(gwv1.RouteReasonBackendNotFound, field,
		fmt.Sprintf("Service %s is of type ExternalName, and its spec.externalName is empty", service))
}

// BackendExternalNamePort says that the targetPort of a Service of type ExternalName is a name,
// which there are no pods to look up in.
func BackendExternalNamePort(field, service string, port int32, target string) metav1.Condition {
	return unresolved(gwv1.RouteReasonBackendNotFound, field,
		fmt.Sprintf("port %d of Service %s has targetPort %q, and a Service of type ExternalName has no pods that give the name a number; write the number of the port in targetPort", port, service, target))
}

// BackendNameLocal says that the name of a Service of type ExternalName does not lead
// out of the cluster, and why.
func BackendNameLocal(field, service, host, why string) metav1.Condition {
	return unresolved(ReasonBackendNameNotAllowed, field,
		fmt.Sprintf("Service %s is of type ExternalName with spec.externalName %q, which can't be allowed: %s; name the Service that it leads to, with a ReferenceGrant where that is in another namespace", service, host, why))
}

// ReasonBackendNameNotAllowed is why a backend that is a DNS name can't be used: the
// class of the Gateway does not allow the name.
const ReasonBackendNameNotAllowed gwv1.RouteConditionReason = "ExternalNameNotAllowed"

// BackendNameNotAllowed says that a backend, given as "Service ns/name", leads to a DNS
// name to which the routes of a Gateway may not lead.
func BackendNameNotAllowed(backend, host, gateway, class string) metav1.Condition {
	return no(gwv1.RouteConditionResolvedRefs, ReasonBackendNameNotAllowed,
		fmt.Sprintf("%s leads to %q, which GatewayClass %s of Gateway %s does not allow; have the name listed in spec.backends.externalNames of the class's GatewayParameters, or use a Service with EndpointSlices", backend, host, class, gateway))
}

// ReasonBackendLoop is why a backend can't be used that is a listener of this process.
const ReasonBackendLoop gwv1.RouteConditionReason = "BackendIsListener"

// BackendLoop says that a backend, given as "Service ns/name", leads to a listener that
// the same process serves, so that requests could go round for ever.
func BackendLoop(backend, address string) metav1.Condition {
	return no(gwv1.RouteConditionResolvedRefs, ReasonBackendLoop,
		fmt.Sprintf("%s leads to %s, where a listener of this process is, so that requests would go round; correct its address or port", backend, address))
}

// BackendExternalNameDatagrams says that datagrams can't be sent to a Service of
// type ExternalName.
func BackendExternalNameDatagrams(field, service string) metav1.Condition {
	return unresolved(gwv1.RouteReasonUnsupportedProtocol, field,
		fmt.Sprintf("Service %s is of type ExternalName, which UDPRoutes can't be sent to; use a Service with EndpointSlices", service))
}

// BackendNotPermitted says that a backend of another namespace may not be
// referred to.
func BackendNotPermitted(field, service string, g Grant) metav1.Condition {
	return unresolved(gwv1.RouteReasonRefNotPermitted, field, g.refused(service))
}

// BackendUnsupportedProtocol says that a Service port speaks something that a
// route of this kind can't be sent to.
func BackendUnsupportedProtocol(field, service string, port int32, protocol string) metav1.Condition {
	return unresolved(gwv1.RouteReasonUnsupportedProtocol, field,
		fmt.Sprintf("port %d of %s has appProtocol %q, which is not supported; use http, grpc, kubernetes.io/h2c or kubernetes.io/ws", port, service, protocol))
}

func unresolved(reason gwv1.RouteConditionReason, field, message string) metav1.Condition {
	return no(gwv1.RouteConditionResolvedRefs, reason, field+": "+message)
}
