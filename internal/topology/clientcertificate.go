package topology

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// clientCertificateRef returns the reference to the certificate that a Gateway
// shows to its backends; nil where it has none.
func clientCertificateRef(gw *gwv1.Gateway) *gwv1.SecretObjectReference {
	if gw.Spec.TLS == nil || gw.Spec.TLS.Backend == nil {
		return nil
	}
	return gw.Spec.TLS.Backend.ClientCertificateRef
}

// clientCertificate follows that reference. One that is not permitted is not
// followed: its answer says nothing of the Secret.
func (g *Graph) clientCertificate(c *flow.Ctx, gw *gwv1.Gateway) (object.Name, *metav1.Condition) {
	ref := clientCertificateRef(gw)
	if ref == nil {
		return object.Name{}, nil
	}
	secret := secretName(gw.Namespace, *ref)
	if !isSecret(*ref) {
		problem := condition.GatewayClientCertificateKind(kindText(valueOr(ref.Group, ""), valueOr(ref.Kind, "Secret")), string(ref.Name))
		return object.Name{}, &problem
	}
	if !g.permitted(c, kind.Gateway, gw.Namespace, object.Key{Kind: kind.Secret, Name: secret}) {
		problem := condition.GatewayClientCertificateNotPermitted(secret.String(),
			g.grantFor(c, object.Key{Kind: kind.Gateway, Name: object.Name{Namespace: gw.Namespace, Name: gw.Name}}, object.Key{Kind: kind.Secret, Name: secret}))
		return object.Name{}, &problem
	}
	cert, ok := flow.Get(c, g.Certificates, secret)
	switch {
	case !ok, cert.Problem == secretMissing:
		return object.Name{}, new(condition.GatewayClientCertificateMissing(secret.String()))
	case cert.Problem == "":
		return secret, nil
	}
	problem := condition.GatewayClientCertificateInvalid(secret.String(), cert.Problem)
	// It says who the Gateway is, so that a Secret that was deleted has no grace.
	if !cert.Usable() || !cert.Until.IsZero() {
		return object.Name{}, &problem
	}
	problem = cert.kept(problem)
	return secret, &problem
}

// declareClientCertificates says which Gateways show which Secret's certificate to
// their backends, so that whoever needs it depends on nothing else of the Gateway.
func (g *Graph) declareClientCertificates() flow.Table[object.Name, object.Name] {
	return flow.Map("topology-client-certificates", g.Gateways,
		func(_ *flow.Ctx, k object.Name, gw *Gateway, emit func(object.Name, object.Name)) {
			if gw.ClientCertificate != (object.Name{}) {
				emit(k, gw.ClientCertificate)
			}
		}, flow.Equal(flow.Same[object.Name]))
}
