package condition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The conditions below say what a proxy refuses. Their messages end with the proxy's
// own words.

// GatewayProgrammedWithout says that the proxies run the Gateway's configuration,
// but for some of its listeners.
func GatewayProgrammedWithout(listeners []string) metav1.Condition {
	return yes(gwv1.GatewayConditionProgrammed, gwv1.GatewayReasonProgrammed,
		fmt.Sprintf("A proxy has acknowledged the configuration, but not of %s; see the conditions there", listenersNamed(listeners)))
}

// GatewayNoListenerProgrammed says that the proxies run no listener of the Gateway
// as it is now.
func GatewayNoListenerProgrammed(listeners []string) metav1.Condition {
	if len(listeners) == 0 {
		return no(gwv1.GatewayConditionProgrammed, gwv1.GatewayReasonInvalid, "The Gateway has no listeners")
	}
	return no(gwv1.GatewayConditionProgrammed, gwv1.GatewayReasonInvalid,
		fmt.Sprintf("No listener is programmed; see the conditions of %s", listenersNamed(listeners)))
}

// GatewayOldProgrammed says that the proxies refuse the newest version of listeners, and
// run no others, but the last versions that they have accepted.
func GatewayOldProgrammed(listeners []string) metav1.Condition {
	return no(gwv1.GatewayConditionProgrammed, gwv1.GatewayReasonInvalid, oldInForce(listeners))
}

// GatewayOldListeners says that the Gateway is served with earlier versions of some of its
// listeners.
func GatewayOldListeners(listeners []string) metav1.Condition {
	return yes(gwv1.GatewayConditionAccepted, gwv1.GatewayReasonListenersNotValid,
		fmt.Sprintf("The Gateway is served with an earlier version of %s; see the conditions there", listenersNamed(listeners)))
}

func oldInForce(listeners []string) string {
	return fmt.Sprintf("The newest version of %s is not in force, and the last that Envoy has accepted is; see the conditions there", listenersNamed(listeners))
}

// ListenerRefused says that a proxy refuses the listener's configuration.
func ListenerRefused(envoy string, keepsOld bool) metav1.Condition {
	subject := "the listener"
	if strings.Contains(envoy, "unable to open file") {
		subject += ", since it can't write the file that accessLog of its GatewayParameters names"
	}
	return ListenerInvalid(refusal(Refusal{Subject: subject, Envoy: envoy, KeepsOld: keepsOld}))
}

// ListenerCertificateRefused says that a proxy refuses one of the listener's
// certificates.
func ListenerCertificateRefused(secret, envoy string, keepsOld bool) metav1.Condition {
	return ListenerInvalid(refusal(Refusal{Subject: "the certificate in Secret " + secret, Envoy: envoy, KeepsOld: keepsOld}))
}

// ListenerCertificateExpired says that a certificate is too old.
func ListenerCertificateExpired(secret string, since time.Time) metav1.Condition {
	return ListenerCertificateInvalid(secret, fmt.Sprintf(certificateExpired+"%s, and clients will refuse it; renew it", since.UTC().Format(time.RFC3339)))
}

// ListenerCertificateNotYetValid says that a certificate is too new.
func ListenerCertificateNotYetValid(secret string, until time.Time) metav1.Condition {
	return ListenerCertificateInvalid(secret, fmt.Sprintf("the certificate is valid from %s on, and clients will refuse it until then; wait, or check this host's clock", until.UTC().Format(time.RFC3339)))
}

// BindFailure is why a port can't be bound.
type BindFailure int

// The reasons for which a port can't be bound.
const (
	BindDenied    BindFailure = iota // the port needs privileges
	BindInUse                        // another process has it
	BindNoAddress                    // the host doesn't have the address
	BindOther                        // anything else
)

// ListenerBindFailed says that a proxy could not bind the listener's port, and
// what to do. The port is the one that was to be bound.
func ListenerBindFailed(failure BindFailure, port int, envoy string) metav1.Condition {
	var remedy string
	switch failure {
	case BindDenied:
		remedy = fmt.Sprintf("Port %d needs privileges: shift all ports (--port-offset 8000 makes it %d), or allow Envoy low ports with \"sudo setcap cap_net_bind_service=+ep\" on its binary", port, port+8000)
	case BindInUse:
		remedy = fmt.Sprintf("Port %d is used by another process: stop that one (\"ss -ltunp 'sport = :%d'\" names it), or choose another port, address (--bind) or --port-offset", port, port)
	case BindNoAddress:
		remedy = "This host does not have the address: correct spec.addresses or --bind"
	case BindOther:
		remedy = fmt.Sprintf("Port %d can't be bound: choose another port, address (--bind) or --port-offset", port)
	}
	return ListenerPortUnavailable(remedy + envoySays + envoy)
}

// Refusal is something that a proxy refuses.
type Refusal struct {
	Subject  string // in words, such as host "a.example.com"
	Envoy    string // its message
	KeepsOld bool   // whether the last good version is in force
}

// RouteNotProgrammed says that a proxy refuses what a route needs, such as a host
// or a backend, or that a part of a backend can't be given to any. The
// specification has no condition of routes for this; Programmed is its name for it
// elsewhere, and the condition is set only where it is false.
func RouteNotProgrammed(refusals []Refusal, omissions []Omission) metav1.Condition {
	reason := gwv1.GatewayConditionReason("RejectedByProxy")
	if len(refusals) == 0 {
		reason = gwv1.GatewayReasonUnsupportedAddress
	}
	parts := make([]string, 0, len(refusals)+len(omissions))
	for _, r := range refusals {
		parts = append(parts, refusal(r))
	}
	for _, o := range omissions {
		parts = append(parts, omission(o))
	}
	return no(gwv1.GatewayConditionProgrammed, reason, join(parts, "; "))
}

// Omission is the part of a Service that can't be given to any proxy.
type Omission struct {
	Service   string   // namespace/name
	Addresses []string // in its EndpointSlices
}

// Equal reports whether two omissions are the same.
func (o *Omission) Equal(p *Omission) bool {
	return o == p || o != nil && p != nil && o.Service == p.Service && slices.Equal(o.Addresses, p.Addresses)
}

func omission(o Omission) string {
	const most = 3
	texts := make([]string, 0, most)
	for _, a := range o.Addresses[:min(most, len(o.Addresses))] {
		texts = append(texts, quote(a))
	}
	names := strings.Join(texts, ", ")
	if more := len(o.Addresses) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("Endpoints of Service %s get no traffic, since they are no IP addresses: %s; for a DNS name use a Service of type ExternalName",
		o.Service, names)
}

func refusal(r Refusal) string {
	force := "it is not in force until that is mended"
	if r.KeepsOld {
		force = "the last version that it accepted stays in force"
	}
	return envoyRefuses + fmt.Sprintf("%s, and %s: %s", r.Subject, force, strings.TrimSpace(r.Envoy))
}
