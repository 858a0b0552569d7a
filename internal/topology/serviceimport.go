package topology

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// serviceImport resolves a reference to a port of a Service of several clusters (KEP-1645). Its endpoints are in
// EndpointSlices that whoever connects the clusters makes, with a label of their own.
func (r *resolver) serviceImport(ref reference) BackendRef { return r.permittedPort(ref, r.importPort) }

func (r *resolver) importPort(ref reference) (*servicePort, BackendRef) {
	i, ok := flow.Get(r.c, r.g.in.Imports, ref.object.Name)
	switch {
	case !ok:
		return nil, problem(condition.BackendNotFound(ref.field(), r.g.missing(r.c, ref.object, &r.route)))
	case ref.port == nil:
		return nil, problem(condition.BackendNoPort(ref.field(), ref.object.String()))
	}
	return namedPort(portsOfImport(i), i.Spec.SessionAffinity, ref)
}

// portsOfImport are its ports as those of a Service.
func portsOfImport(i *mcsv1beta1.ServiceImport) []corev1.ServicePort {
	out := make([]corev1.ServicePort, 0, len(i.Spec.Ports))
	for _, p := range i.Spec.Ports {
		out = append(out, corev1.ServicePort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port})
	}
	return out
}

// ClusterIP is the address behind which the cluster's network chooses an endpoint of a backend; empty for one without.
func (g *Graph) ClusterIP(c *flow.Ctx, k object.Key) string {
	switch k.Kind {
	case kind.Service:
		if s, ok := flow.Get(c, g.in.Services, k.Name); ok && s.Spec.ClusterIP != corev1.ClusterIPNone {
			return s.Spec.ClusterIP
		}
	case kind.ServiceImport:
		if i, ok := flow.Get(c, g.in.Imports, k.Name); ok && i.Spec.Type != mcsv1beta1.Headless && len(i.Spec.IPs) > 0 && g.leadsOn(i.Spec.IPs[0]) {
			return i.Spec.IPs[0]
		}
	}
	return ""
}

// leadsOn reports whether an address that an object names may be sent to. In a cluster those of a proxy itself, and of its
// node, are none, as the API server has it for EndpointSlices; it doesn't look at those of ServiceImports.
func (g *Graph) leadsOn(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && (g.options.AnyName || ip.Unmap().IsGlobalUnicast())
}
