package topology

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// PortOf returns a port of a Service as a route's reference to it would resolve,
// or nil where no route could be sent there.
func PortOf(s *corev1.Service, number int32, use Use) *ServicePort {
	name := ir.Name{Namespace: s.Namespace, Name: s.Name}
	field := func() string { return "" }
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return externalName(name, s, number, use, field).Port
	}
	p := findPort(s, number, use)
	if p == nil {
		return nil
	}
	return servicePort(&ServicePort{
		Service: name, Port: p.Port, Use: use, PortName: p.Name, AppProtocol: valueOr(p.AppProtocol, ""),
	}, field).Port
}
