package topology

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
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
func (g *Graph) clientCertificate(c *flow.Ctx, gw *gwv1.Gateway) (ir.Name, *metav1.Condition) {
	ref := clientCertificateRef(gw)
	if ref == nil {
		return ir.Name{}, nil
	}
	secret := secretName(gw.Namespace, *ref)
	if !isSecret(*ref) {
		problem := condition.GatewayClientCertificateKind(kindText(valueOr(ref.Group, ""), valueOr(ref.Kind, "Secret")), string(ref.Name))
		return ir.Name{}, &problem
	}
	if !g.permitted(c, "Gateway", gw.Namespace, "Secret", secret) {
		problem := condition.GatewayClientCertificateNotPermitted(secret.String(), secret.Namespace, gw.Namespace)
		return ir.Name{}, &problem
	}
	cert, ok := flow.Get(c, g.Certificates, secret)
	if !ok {
		problem := condition.GatewayClientCertificateMissing(secret.String())
		return ir.Name{}, &problem
	}
	if cert.Problem != "" {
		problem := condition.GatewayClientCertificateInvalid(secret.String(), cert.Problem)
		return ir.Name{}, &problem
	}
	return secret, nil
}

// declareClientCertificates says which Gateways show which Secret's certificate to
// their backends, so that whoever needs it depends on nothing else of the Gateway.
func (g *Graph) declareClientCertificates() flow.Table[ir.Name, ir.Name] {
	return flow.Map("topology-client-certificates", g.Gateways,
		func(_ *flow.Ctx, k ir.Name, gw *Gateway, emit func(ir.Name, ir.Name)) {
			if gw.ClientCertificate != (ir.Name{}) {
				emit(k, gw.ClientCertificate)
			}
		}, flow.Equal(flow.Same[ir.Name]))
}
