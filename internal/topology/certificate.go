package topology

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// declareCertificates reads the Secrets with certificates that Gateways and
// ListenerSets of ours refer to and may refer to. Others are not even asked for.
func (g *Graph) declareCertificates() flow.Table[object.Name, *Certificate] {
	byGateways := flow.Map("topology-gateway-secrets", g.owned,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(use[object.Name], object.Name)) {
			seen := map[object.Name]bool{}
			if ref := clientCertificateRef(gw); ref != nil && isSecret(*ref) {
				seen[secretName(name.Namespace, *ref)] = true
			}
			for i := range gw.Spec.Listeners {
				wantedSecrets(name, &gw.Spec.Listeners[i], seen)
			}
			g.emitSecrets(c, object.Key{Kind: kind.Gateway, Name: name}, g.FleetOf(c, name), seen, emit)
		}, flow.Equal(flow.Same[object.Name]))
	bySets := flow.Map("topology-set-secrets", g.sets,
		func(c *flow.Ctx, name object.Name, s *set, emit func(use[object.Name], object.Name)) {
			seen := map[object.Name]bool{}
			for _, d := range s.listeners {
				wantedSecrets(name, d.spec, seen)
			}
			g.emitSecrets(c, object.Key{Kind: kind.ListenerSet, Name: name}, s.gateway, seen, emit)
		}, flow.Equal(flow.Same[object.Name]))
	g.certificatesOf = declareUsesOf(object.Name.Compare, byGateways, bySets)
	return flow.Map("topology-certificates", declareUsed("topology-secrets", byGateways, bySets),
		func(c *flow.Ctx, name object.Name, _ struct{}, emit func(object.Name, *Certificate)) {
			if certificate := g.certificate(c, name); certificate != nil {
				emit(name, certificate)
			}
		})
}

// emitSecrets emits those of some Secrets that an object of a Gateway may refer to.
func (g *Graph) emitSecrets(c *flow.Ctx, user object.Key, fleet object.Name, secrets map[object.Name]bool, emit func(use[object.Name], object.Name)) {
	for _, secret := range slices.SortedFunc(maps.Keys(secrets), object.Name.Compare) {
		if g.permitted(c, user.Kind, user.Namespace, object.Key{Kind: kind.Secret, Name: secret}) {
			emit(use[object.Name]{user.Kind, user.Name, secret}, fleet)
		}
	}
}

// wantedSecrets adds the Secrets that a listener refers to.
func wantedSecrets(owner object.Name, l *gwv1.Listener, secrets map[object.Name]bool) {
	for _, ref := range certificateRefs(l) {
		if isSecret(ref) {
			secrets[secretName(owner.Namespace, ref)] = true
		}
	}
}

// Equal reports whether two nodes hold the same certificate.
func (c *Certificate) Equal(o *Certificate) bool {
	return c.Name == o.Name && c.Problem == o.Problem && c.Chain == o.Chain && c.Key == o.Key && c.Until.Equal(o.Until)
}

// certificateRefs returns the references that the listener makes use of.
func certificateRefs(l *gwv1.Listener) []gwv1.SecretObjectReference {
	if tlsMode(l) == "" || passesThrough(l) || l.TLS == nil {
		return nil
	}
	return l.TLS.CertificateRefs
}

func isSecret(ref gwv1.SecretObjectReference) bool {
	return valueOr(ref.Group, "") == "" && valueOr(ref.Kind, "Secret") == "Secret"
}

func secretName(namespace string, ref gwv1.SecretObjectReference) object.Name {
	return object.Name{
		Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(namespace))),
		Name:      string(ref.Name),
	}
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// readCertificate reads the pair of a Secret, or says what is wrong with it.
// What Envoy would refuse is refused here, where it costs one listener: a bad
// pair that reaches a proxy stalls every handshake that selects it.
func readCertificate(name object.Name, s *corev1.Secret) *Certificate {
	c := &Certificate{Name: name}
	leaf, chain, err := checkPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	c.Chain = chain
	c.Key = ir.Sensitive(s.Data[corev1.TLSPrivateKeyKey])
	c.Names = certificateNames(leaf)
	c.Validity = Validity{NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter}
	return c
}
