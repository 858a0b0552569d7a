package topology

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// ClientValidation is how a listener checks the certificates of clients.
type ClientValidation struct {
	// Authorities sign the certificates of clients: those that exist, may be referred
	// to and can be used; at least one.
	Authorities []object.Key
	// Fallback lets clients in that have no certificate or another one.
	Fallback bool
}

// Equal reports whether two listeners check alike.
func (v *ClientValidation) Equal(o *ClientValidation) bool {
	return v == o || v != nil && o != nil && v.Fallback == o.Fallback && slices.Equal(v.Authorities, o.Authorities)
}

// InsecureFrontend reports whether clients without a valid certificate are let in
// somewhere although their certificates are checked.
func (g *Gateway) InsecureFrontend() bool {
	insecure := func(c gwv1.TLSConfig) bool {
		return c.Validation != nil && c.Validation.Mode == gwv1.AllowInsecureFallback
	}
	tls := g.Object.Spec.TLS
	return tls != nil && tls.Frontend != nil && (insecure(tls.Frontend.Default) ||
		slices.ContainsFunc(tls.Frontend.PerPort, func(p gwv1.TLSPortConfig) bool { return insecure(p.TLS) }))
}

// clientValidation returns what a Gateway asks of the clients of a port; nil where
// it asks for nothing.
func clientValidation(gw *gwv1.Gateway, port gwv1.PortNumber) *gwv1.FrontendTLSValidation {
	if gw.Spec.TLS == nil || gw.Spec.TLS.Frontend == nil {
		return nil
	}
	for _, p := range gw.Spec.TLS.Frontend.PerPort {
		if p.Port == port {
			return p.TLS.Validation
		}
	}
	return gw.Spec.TLS.Frontend.Default.Validation
}

// clientAuthorityPermitted reports whether Gateways of a namespace may refer to an object
// with certificates of authorities. One that is in no namespace is for all.
func (g *Graph) clientAuthorityPermitted(c *flow.Ctx, from string, ref object.Key) bool {
	return ref.Namespace == "" || g.permitted(c, kind.Gateway, from, ref)
}

// resolveClients follows the references to the authorities that clients'
// certificates are checked with. They are the Gateway's, also for the listeners of a
// ListenerSet. Without any of them nobody could be told from anybody, and the
// listener is not served.
func (g *Graph) resolveClients(c *flow.Ctx, d *draft) (problems []metav1.Condition) {
	if d.clients == nil {
		return nil
	}
	var refs []object.Key
	from := d.Key.Gateway().Namespace
	for _, r := range d.clients.CACertificateRefs {
		ref, ok := clientAuthorityRef(from, r)
		if !ok {
			problems = append(problems, condition.ListenerAuthorityKind(kindText(r.Group, r.Kind), string(r.Name)))
			continue
		}
		if !g.clientAuthorityPermitted(c, from, ref) {
			problems = append(problems, condition.ListenerAuthorityNotPermitted(ref.String(), g.grantFor(c, object.Key{Kind: kind.Gateway, Name: name(from, "")}, ref)))
			continue
		}
		authority, ok := flow.Get(c, g.Authorities, ref)
		switch {
		case !ok:
			problems = append(problems, condition.ListenerAuthorityMissing(ref.String(), g.unread(c, ref.Kind)))
		case authority.Problem != "":
			problems = append(problems, condition.ListenerAuthorityInvalid(ref.String(), authority.Problem))
		case !slices.Contains(refs, ref):
			refs = append(refs, ref)
		}
	}
	if len(problems) > 0 && !g.options.Reader(d.Key.Owner().Namespace).Sees(from) {
		problems = []metav1.Condition{condition.ListenerAuthoritiesOfGateway(problems)}
	}
	if refs == nil {
		d.refuse(condition.ListenerNoValidAuthority(problems))
		return problems
	}
	d.Clients = &ClientValidation{Authorities: refs, Fallback: d.clients.Mode == gwv1.AllowInsecureFallback}
	return problems
}
