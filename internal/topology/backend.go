package topology

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// backend follows a route's reference to a Service. A reference that is not
// permitted is not followed: its answer says nothing of the Service.
func (g *Graph) backend(c *flow.Ctx, route ir.Name, ref *gwv1.BackendObjectReference, field func() string) BackendRef {
	if group, kind := valueOr(ref.Group, ""), valueOr(ref.Kind, "Service"); kind != "Service" || group != "" {
		return problem(condition.BackendKind(field(), kindText(group, kind), string(ref.Name)))
	}
	name := ir.Name{
		Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(route.Namespace))),
		Name:      string(ref.Name),
	}
	if !g.permitted(c, httpRoute, route.Namespace, "Service", name) {
		return problem(condition.BackendNotPermitted(field(), name.String(), name.Namespace, httpRoute, route.Namespace))
	}
	service, ok := flow.Get(c, g.in.Services, name)
	switch {
	case !ok:
		return problem(condition.BackendNotFound(field(), name.String()))
	case ref.Port == nil:
		return problem(condition.BackendNoPort(field(), name.String()))
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return externalName(name, service, *ref.Port, field)
	}
	port := findPort(service, *ref.Port)
	if port == nil {
		return problem(condition.BackendPortNotFound(field(), name.String(), *ref.Port, portTexts(service)))
	}
	return servicePort(&ServicePort{
		Service: name, Port: port.Port, PortName: port.Name, AppProtocol: valueOr(port.AppProtocol, ""),
	}, field)
}

// externalName resolves a port of a Service that is another name for a host. Such
// a Service need not list its ports.
func externalName(name ir.Name, s *corev1.Service, port int32, field func() string) BackendRef {
	if s.Spec.ExternalName == "" {
		return problem(condition.BackendExternalNameMissing(field(), name.String()))
	}
	out := &ServicePort{Service: name, Port: port, ExternalName: s.Spec.ExternalName, TargetPort: port}
	if len(s.Spec.Ports) > 0 {
		p := findPort(s, port)
		if p == nil {
			return problem(condition.BackendPortNotFound(field(), name.String(), port, portTexts(s)))
		}
		out.PortName, out.AppProtocol = p.Name, valueOr(p.AppProtocol, "")
		if n := p.TargetPort.IntVal; n > 0 {
			out.TargetPort = n
		}
	}
	return servicePort(out, field)
}

// appProtocols are the values of a Service port's appProtocol that HTTP routes can
// be sent to (GEP-1911, KEP-3726).
var appProtocols = map[string]bool{
	"": true, "http": true, "grpc": true, "kubernetes.io/h2c": true, "kubernetes.io/ws": true,
}

func servicePort(p *ServicePort, field func() string) BackendRef {
	if !appProtocols[p.AppProtocol] {
		return problem(condition.BackendUnsupportedProtocol(field(), p.Service.String(), p.Port, p.AppProtocol))
	}
	return BackendRef{Port: p}
}

// findPort returns the TCP port of that number: another protocol may share it.
func findPort(s *corev1.Service, number int32) *corev1.ServicePort {
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; p.Port == number && isTCP(p) {
			return p
		}
	}
	return nil
}

func isTCP(p *corev1.ServicePort) bool { return p.Protocol == "" || p.Protocol == corev1.ProtocolTCP }

func portTexts(s *corev1.Service) []string {
	var out []string
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; isTCP(p) {
			out = append(out, strconv.Itoa(int(p.Port)))
		}
	}
	return out
}

func problem(c metav1.Condition) BackendRef { return BackendRef{Problem: &c} }
