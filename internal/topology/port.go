package topology

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// PortOf returns a port of a Service as a route's reference to it would resolve,
// or nil where no route could be sent there.
func (g *Graph) PortOf(c *flow.Ctx, s *corev1.Service, number int32, use Use) *ServicePort {
	service := object.Name{Namespace: s.Namespace, Name: s.Name}
	field := func() string { return "" }
	var out *ServicePort
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		out = externalName(service, s, number, use, field).Port
	} else if p := findPort(s, number, use); p != nil {
		out = &ServicePort{Service: service, Port: p.Port, Use: use, PortName: p.Name, AppProtocol: valueOr(p.AppProtocol, "")}
	}
	if out == nil {
		return nil
	}
	return g.policiesOf(c, service).finish(out, field).Port
}
