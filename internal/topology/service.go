package topology

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// servicePort is a port of a Service on its way to become a backend.
type servicePort struct {
	ir.Backend
	appProtocol string
}

// service resolves a reference to a port of a Service. A reference that is not
// permitted is not followed: its answer says nothing of the Service.
func (r *resolver) service(ref reference) BackendRef { return r.permittedPort(ref, r.servicePort) }

// permittedPort resolves a reference to a port of an object that policies may target, which find knows.
func (r *resolver) permittedPort(ref reference, find func(reference) (*servicePort, BackendRef)) BackendRef {
	if !r.g.permitted(r.c, r.route.Kind, r.route.Namespace, ref.object) {
		return problem(condition.BackendNotPermitted(ref.field(), ref.object.String(), r.g.grantFor(r.c, r.route, ref.object)))
	}
	p, refused := find(ref)
	// A policy may target a Service that doesn't exist.
	if refused.Problem != nil && !condition.IsBackendMissing(*refused.Problem) {
		return refused
	}
	policies, some := r.g.policiesOf(r.c, ref.object)
	if some || r.g.options.AnyPolicy {
		r.policyTargets = append(r.policyTargets, ref.object)
	}
	if refused.Problem != nil {
		return refused
	}
	return policies.finish(p, ref, r.g.options.Reader(r.route.Namespace))
}

// servicePort finds the port that a reference names, or says why there is none. The
// policies of the Service are for servicePolicies.finish to apply.
func (r *resolver) servicePort(ref reference) (*servicePort, BackendRef) {
	s, ok := flow.Get(r.c, r.g.in.Services, ref.object.Name)
	switch {
	case !ok:
		return nil, problem(condition.BackendNotFound(ref.field(), r.g.missing(r.c, ref.object, &r.route)))
	case ref.port == nil:
		return nil, problem(condition.BackendNoPort(ref.field(), ref.object.String()))
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return r.externalName(s, ref)
	}
	return namedPort(s.Spec.Ports, s.Spec.SessionAffinity, ref)
}

// namedPort finds the port that a reference names among those of an object with an affinity.
func namedPort(ports []corev1.ServicePort, affinity corev1.ServiceAffinity, ref reference) (*servicePort, BackendRef) {
	port := findPort(ports, *ref.port, ref.use)
	if port == nil {
		return nil, problem(portMissing(ports, ref))
	}
	p := &servicePort{
		Backend:     ir.Backend{Object: ref.object, Port: port.Port, Use: ref.use, PortName: port.Name},
		appProtocol: valueOr(port.AppProtocol, ""),
	}
	p.Settings.ClientIP = p.forRequests() && affinity == corev1.ServiceAffinityClientIP
	return p, BackendRef{}
}

// externalName resolves a port of a Service that is another name for a host. Such
// a Service need not list its ports.
func (r *resolver) externalName(s *corev1.Service, ref reference) (*servicePort, BackendRef) {
	name := ref.object.Name.String()
	if ref.use == ir.UseUDP {
		return nil, problem(condition.BackendExternalNameDatagrams(ref.field(), name))
	}
	if s.Spec.ExternalName == "" {
		return nil, problem(condition.BackendExternalNameMissing(ref.field(), name))
	}
	if why := ir.LocalName(s.Spec.ExternalName); why != "" && !r.g.options.AnyName {
		return nil, problem(condition.BackendNameLocal(ref.field(), name, s.Spec.ExternalName, why))
	}
	out := &servicePort{Backend: ir.Backend{
		Object: ref.object, Port: *ref.port, Use: ref.use, DNS: s.Spec.ExternalName, TargetPort: *ref.port, Outside: !r.g.options.AnyName,
	}}
	if len(s.Spec.Ports) > 0 {
		p := findPort(s.Spec.Ports, *ref.port, ref.use)
		if p == nil {
			return nil, problem(portMissing(s.Spec.Ports, ref))
		}
		out.PortName, out.appProtocol = p.Name, valueOr(p.AppProtocol, "")
		if p.TargetPort.Type == intstr.String && p.TargetPort.StrVal != "" {
			return nil, problem(condition.BackendExternalNamePort(ref.field(), name, *ref.port, p.TargetPort.StrVal))
		}
		if n := p.TargetPort.IntVal; n > 0 {
			out.TargetPort = n
		}
	}
	return out, BackendRef{}
}

// appProtocols are the values of a Service port's appProtocol that requests can be
// sent to (GEP-1911, KEP-3726). To bytes and datagrams it makes no difference.
var appProtocols = map[string]bool{
	"": true, "http": true, "grpc": true, "kubernetes.io/h2c": true, "kubernetes.io/ws": true,
}

// encryptedAppProtocols are those of requests over TLS. Which authorities to trust
// is not for a Service to say (GEP-1897), so they need a policy that does.
var encryptedAppProtocols = map[string]bool{"https": true, "kubernetes.io/wss": true}

// finish makes a port the backend that the policies of its Service want it to be, and
// checks that it can be spoken to as its Service says.
func (s servicePolicies) finish(p *servicePort, ref reference, reader condition.Reader) BackendRef {
	if c := s.encrypt(p, ref.field, reader); c != nil {
		return problem(*c)
	}
	s.limitRetries(p)
	s.set(p)
	if p.forRequests() && !appProtocols[p.appProtocol] {
		switch {
		case !encryptedAppProtocols[strings.ToLower(p.appProtocol)]:
			return problem(condition.BackendUnsupportedProtocol(ref.field(), p.Object.String(), p.Port, p.appProtocol))
		case p.TLS.IsZero():
			return problem(condition.BackendNeedsPolicy(ref.field(), p.Object.String(), p.Port, p.appProtocol))
		}
	}
	p.Protocol = p.protocol()
	return BackendRef{Backend: p.Key()}
}

// forRequests reports whether requests are sent to the port, and not bytes or datagrams.
func (p *servicePort) forRequests() bool { return p.Use != ir.UseTCP && p.Use != ir.UseUDP }

// protocol says what to speak, by the use and the port's appProtocol (GEP-1911,
// KEP-3726). Others than these are HTTP/1.1, or have been refused.
func (p *servicePort) protocol() ir.Protocol {
	switch p.Use {
	case ir.UseTCP:
		return ir.TCP
	case ir.UseUDP:
		return ir.UDP
	case ir.UseGRPC:
		return ir.H2C
	case ir.UseHTTP, ir.UseAuth:
	}
	switch {
	case p.appProtocol == "kubernetes.io/h2c", p.appProtocol == "grpc":
		return ir.H2C
	case p.appProtocol == "kubernetes.io/ws", strings.EqualFold(p.appProtocol, "kubernetes.io/wss"):
		return ir.WebSocket
	default:
		return ir.HTTP1
	}
}

// transport is the protocol that a Service's port must have for a use.
func transport(use ir.Use) corev1.Protocol {
	if use == ir.UseUDP {
		return corev1.ProtocolUDP
	}
	return corev1.ProtocolTCP
}

// findPort returns the port of that number for a use: TCP and UDP may share one.
func findPort(ports []corev1.ServicePort, number int32, use ir.Use) *corev1.ServicePort {
	for i := range ports {
		if p := &ports[i]; p.Port == number && has(p, transport(use)) {
			return p
		}
	}
	return nil
}

func has(p *corev1.ServicePort, t corev1.Protocol) bool {
	return p.Protocol == t || p.Protocol == "" && t == corev1.ProtocolTCP
}

// portMissing says why a Service or a ServiceImport has not the port that a reference names.
func portMissing(ports []corev1.ServicePort, ref reference) metav1.Condition {
	name, protocol := ref.object.String(), string(transport(ref.use))
	if slices.ContainsFunc(ports, func(p corev1.ServicePort) bool { return p.Port == *ref.port && p.Protocol != corev1.ProtocolSCTP }) {
		return condition.BackendPortProtocol(ref.field(), name, *ref.port, protocol)
	}
	return condition.BackendPortNotFound(ref.field(), name, *ref.port, protocol, portTexts(ports, ref.use))
}

func portTexts(ports []corev1.ServicePort, use ir.Use) []string {
	var out []string
	for i := range ports {
		if p := &ports[i]; has(p, transport(use)) {
			out = append(out, strconv.Itoa(int(p.Port)))
		}
	}
	return out
}

// portNames are the names of ports, of those that have one.
func portNames(ports []corev1.ServicePort) []string {
	return namesIn(ports, func(p *corev1.ServicePort) string { return p.Name })
}
