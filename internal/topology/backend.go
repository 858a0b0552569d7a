package topology

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// backend follows a route's reference to a Service. A reference that is not
// permitted is not followed: its answer says nothing of the Service. The policies
// of the Service are for servicePolicies.finish to apply.
func (g *Graph) backend(c *flow.Ctx, route object.Key, use Use, ref *gwv1.BackendObjectReference, field func() string) BackendRef {
	if group, kind := valueOr(ref.Group, ""), valueOr(ref.Kind, "Service"); kind != "Service" || group != "" {
		if isXBackend(ref) {
			return g.xBackendPort(c, route, use, ref, field)
		}
		return problem(condition.BackendKind(field(), kindText(group, kind), string(ref.Name)))
	}
	name := serviceName(route, ref)
	if !g.permitted(c, route.Kind, route.Namespace, object.Key{Kind: kind.Service, Name: name}) {
		return problem(condition.BackendNotPermitted(field(), name.String(), name.Namespace, route.Kind.Name(), route.Namespace))
	}
	service, ok := flow.Get(c, g.in.Services, name)
	switch {
	case !ok:
		return problem(condition.BackendNotFound(field(), name.String()))
	case ref.Port == nil:
		return problem(condition.BackendNoPort(field(), name.String()))
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return externalName(name, service, *ref.Port, use, field)
	}
	port := findPort(service, *ref.Port, use)
	if port == nil {
		return problem(condition.BackendPortNotFound(field(), name.String(), *ref.Port, string(transport(use)), portTexts(service, use)))
	}
	return BackendRef{Port: &ServicePort{
		Service: name, Port: port.Port, Use: use, PortName: port.Name, AppProtocol: valueOr(port.AppProtocol, ""),
	}}
}

// serviceName is the Service that a reference names.
func serviceName(route object.Key, ref *gwv1.BackendObjectReference) object.Name {
	return object.Name{
		Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(route.Namespace))),
		Name:      string(ref.Name),
	}
}

// externalName resolves a port of a Service that is another name for a host. Such
// a Service need not list its ports.
func externalName(name object.Name, s *corev1.Service, port int32, use Use, field func() string) BackendRef {
	if use == UseUDP {
		return problem(condition.BackendExternalNameDatagrams(field(), name.String()))
	}
	if s.Spec.ExternalName == "" {
		return problem(condition.BackendExternalNameMissing(field(), name.String()))
	}
	out := &ServicePort{Service: name, Port: port, Use: use, ExternalName: s.Spec.ExternalName, TargetPort: port}
	if len(s.Spec.Ports) > 0 {
		p := findPort(s, port, use)
		if p == nil {
			return problem(condition.BackendPortNotFound(field(), name.String(), port, string(transport(use)), portTexts(s, use)))
		}
		out.PortName, out.AppProtocol = p.Name, valueOr(p.AppProtocol, "")
		if n := p.TargetPort.IntVal; n > 0 {
			out.TargetPort = n
		}
	}
	return BackendRef{Port: out}
}

// appProtocols are the values of a Service port's appProtocol that requests can be
// sent to (GEP-1911, KEP-3726). To bytes and datagrams it makes no difference.
var appProtocols = map[string]bool{
	"": true, "http": true, "grpc": true, "kubernetes.io/h2c": true, "kubernetes.io/ws": true,
}

// encryptedAppProtocols are those of requests over TLS. Which authorities to trust
// is not for a Service to say (GEP-1897), so they need a policy that does.
var encryptedAppProtocols = map[string]bool{"https": true, "kubernetes.io/wss": true}

// finish gives a port what the policies of its Service say of it, and checks that
// it can be spoken to as its Service says.
func (s *servicePolicies) finish(p *ServicePort, field func() string) BackendRef {
	if c := s.encrypt(p, field); c != nil {
		return problem(*c)
	}
	s.limitRetries(p)
	if p.Use != UseHTTP && p.Use != UseGRPC || appProtocols[p.AppProtocol] {
		return BackendRef{Port: p}
	}
	switch {
	case !encryptedAppProtocols[strings.ToLower(p.AppProtocol)]:
		return problem(condition.BackendUnsupportedProtocol(field(), p.Service.String(), p.Port, p.AppProtocol))
	case p.TLS == nil:
		return problem(condition.BackendNeedsPolicy(field(), p.Service.String(), p.Port, p.AppProtocol))
	}
	return BackendRef{Port: p}
}

// transport is the protocol that a Service's port must have for a use.
func transport(use Use) corev1.Protocol {
	if use == UseUDP {
		return corev1.ProtocolUDP
	}
	return corev1.ProtocolTCP
}

// findPort returns the port of that number for a use: TCP and UDP may share one.
func findPort(s *corev1.Service, number int32, use Use) *corev1.ServicePort {
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; p.Port == number && has(p, transport(use)) {
			return p
		}
	}
	return nil
}

func has(p *corev1.ServicePort, t corev1.Protocol) bool {
	return p.Protocol == t || p.Protocol == "" && t == corev1.ProtocolTCP
}

func portTexts(s *corev1.Service, use Use) []string {
	var out []string
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; has(p, transport(use)) {
			out = append(out, strconv.Itoa(int(p.Port)))
		}
	}
	return out
}

func problem(c metav1.Condition) BackendRef { return BackendRef{Problem: &c} }
