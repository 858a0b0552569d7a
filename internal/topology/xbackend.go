package topology

import (
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// XBackend is an XBackend, whoever refers to it.
type XBackend struct {
	Name   object.Name
	Object *gwxv1alpha1.XBackend
	// Refused, where set, is why the backend can't be used: an Accepted condition.
	Refused  *metav1.Condition
	Hostname string // to resolve
	Port     int32
	Protocol gwxv1alpha1.BackendProtocol // empty for what the route speaks
	TLS      ir.BackendTLS               // zero for clear text
}

// Equal reports whether two nodes say the same of the same object.
func (b *XBackend) Equal(o *XBackend) bool {
	return b.Object == o.Object && b.Name == o.Name && ptr.Equal(b.Refused, o.Refused) &&
		b.Hostname == o.Hostname && b.Port == o.Port && b.Protocol == o.Protocol && b.TLS == o.TLS
}

func (g *Graph) declareXBackends() flow.Table[object.Name, *XBackend] {
	return flow.Map("topology-xbackends", g.in.XBackends,
		func(c *flow.Ctx, k object.Name, o *gwxv1alpha1.XBackend, emit func(object.Name, *XBackend)) {
			emit(k, g.xBackend(c, k, o))
		})
}

// xBackend makes the node of an XBackend.
func (g *Graph) xBackend(c *flow.Ctx, name object.Name, o *gwxv1alpha1.XBackend) *XBackend {
	b := &XBackend{Name: name, Object: o, Port: int32(o.Spec.Port.Number), Protocol: valueOr(o.Spec.Protocol, "")}
	refuse := func(c metav1.Condition) *XBackend {
		b.Refused = &c
		return b
	}
	switch {
	case o.Spec.Type == gwxv1alpha1.BackendTypeEndpointSelector:
		return refuse(condition.XBackendSelector())
	case o.Spec.ExternalHostname == nil || o.Spec.Type != gwxv1alpha1.BackendTypeExternalHostname:
		return refuse(condition.XBackendInvalid("spec.type", "must be ExternalHostname, with externalHostname beside it"))
	case b.Port < 1 || b.Port > 65535:
		return refuse(condition.XBackendInvalid("spec.port.number", "is not between 1 and 65535"))
	}
	b.Hostname = strings.ToLower(string(o.Spec.ExternalHostname.Hostname))
	if _, err := netip.ParseAddr(b.Hostname); err == nil || b.Hostname == "" || strings.HasSuffix(b.Hostname, ".cluster.local") {
		return refuse(condition.XBackendInvalid("spec.externalHostname.hostname", "must be the DNS name of a host outside of the cluster"))
	}
	if why := ir.LocalName(b.Hostname); why != "" && !g.options.AnyName {
		return refuse(condition.XBackendInvalid("spec.externalHostname.hostname", "must be the DNS name of a host outside of the cluster: "+why))
	}
	if t := o.Spec.TLS; t != nil && t.Mode != gwxv1alpha1.BackendTLSModeNone {
		if t.Mode != gwxv1alpha1.BackendTLSModeServerOnly {
			return refuse(condition.XBackendInvalid("spec.tls.mode", "is not supported; use ServerOnly, and spec.tls.backend.clientCertificateRef of the Gateway for a client's certificate"))
		}
		policy := validationOf(o)
		if policy == nil {
			return refuse(condition.XBackendInvalid("spec.tls.validation", "is missing"))
		}
		checked := g.backendTLSPolicy(c, name, policy)
		if checked.Refused != nil {
			return refuse(condition.XBackendTLS(checked.Refused.Message))
		}
		if checked.ResolvedRefs.Status != metav1.ConditionTrue {
			return refuse(condition.XBackendTLS(checked.ResolvedRefs.Message))
		}
		b.TLS = checked.Asks
	}
	encrypted := b.Protocol == gwxv1alpha1.BackendProtocolHTTP2 || b.Protocol == gwxv1alpha1.BackendProtocolWSS
	switch {
	case b.Protocol == gwxv1alpha1.BackendProtocolMCP:
		return refuse(condition.XBackendInvalid("spec.protocol", "is not supported; leave it out"))
	case encrypted && b.TLS.IsZero():
		return refuse(condition.XBackendInvalid("spec.protocol", "needs tls"))
	case b.Protocol == gwxv1alpha1.BackendProtocolH2C && !b.TLS.IsZero():
		return refuse(condition.XBackendInvalid("spec.protocol", "is without tls; use HTTP2"))
	}
	return b
}

// validationOf gives an XBackend's TLS the form of a policy, whose fields are the
// same; nil where it has none.
func validationOf(o *gwxv1alpha1.XBackend) *gwv1.BackendTLSPolicy {
	if o.Spec.TLS == nil || o.Spec.TLS.Validation == nil {
		return nil
	}
	p := &gwv1.BackendTLSPolicy{}
	p.Namespace, p.Name = o.Namespace, o.Name
	p.Spec.Validation = *o.Spec.TLS.Validation
	return p
}

// xBackend resolves a reference to an XBackend, which must be in the route's own
// namespace (GEP-4894) and says its port itself.
func (r *resolver) xBackend(ref reference) BackendRef {
	name := ref.object.Name
	if name.Namespace != r.route.Namespace {
		return problem(condition.XBackendElsewhere(ref.field(), name.String()))
	}
	if ref.use != ir.UseUDP { // datagrams can't be sent to an XBackend
		r.policyTargets = append(r.policyTargets, ref.object)
	}
	b, ok := flow.Get(r.c, r.g.XBackends, name)
	switch {
	case !ok:
		return problem(condition.XBackendNotFound(ref.field(), name.String()))
	case b.Refused != nil:
		return problem(condition.XBackendRefused(ref.field(), name.String(), b.Refused.Message))
	}
	protocol, ok := spoken[ref.use][b.Protocol]
	if !ok {
		return problem(condition.XBackendProtocol(ref.field(), name.String(), string(b.Protocol), r.route.Kind.Name()))
	}
	return BackendRef{Backend: ir.Backend{
		Object: ref.object, Port: b.Port, Use: ref.use, Protocol: protocol, DNS: b.Hostname, TargetPort: b.Port,
		Outside: !r.g.options.AnyName, TLS: b.TLS,
	}.Key()}
}

// spoken is what the protocols of XBackends are, by use.
var spoken = map[ir.Use]map[gwxv1alpha1.BackendProtocol]ir.Protocol{
	ir.UseHTTP: {
		"": ir.HTTP1, gwxv1alpha1.BackendProtocolHTTP: ir.HTTP1, gwxv1alpha1.BackendProtocolHTTP11: ir.HTTP1,
		gwxv1alpha1.BackendProtocolHTTP2: ir.H2C, gwxv1alpha1.BackendProtocolH2C: ir.H2C, gwxv1alpha1.BackendProtocolGRPC: ir.H2C,
		gwxv1alpha1.BackendProtocolWSS: ir.WebSocket,
	},
	ir.UseAuth: {
		"": ir.HTTP1, gwxv1alpha1.BackendProtocolHTTP: ir.HTTP1, gwxv1alpha1.BackendProtocolHTTP11: ir.HTTP1,
		gwxv1alpha1.BackendProtocolHTTP2: ir.H2C, gwxv1alpha1.BackendProtocolH2C: ir.H2C,
	},
	ir.UseGRPC: {
		"": ir.H2C, gwxv1alpha1.BackendProtocolHTTP: ir.H2C,
		gwxv1alpha1.BackendProtocolHTTP2: ir.H2C, gwxv1alpha1.BackendProtocolH2C: ir.H2C, gwxv1alpha1.BackendProtocolGRPC: ir.H2C,
	},
	ir.UseTCP: {"": ir.TCP, gwxv1alpha1.BackendProtocolTCP: ir.TCP},
}

// declareXBackendAncestors finds the Gateways with routes that refer to each
// XBackend, sorted.
func (g *Graph) declareXBackendAncestors() flow.Table[object.Name, []Ancestor] {
	return declareAncestors(g, "topology-xbackend-ancestors", g.XBackends, condition.XBackendAccepted(),
		func(b *XBackend) []policy.Target {
			return []policy.Target{{Key: object.Key{Kind: kind.XBackend, Name: b.Name}}}
		},
		func(_ *flow.Ctx, b *XBackend, _ int) *metav1.Condition { return b.Refused })
}
