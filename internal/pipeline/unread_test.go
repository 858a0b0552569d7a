package pipeline

import (
	"slices"
	"strings"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// TestUnreadKinds protects the status from promising what the cluster doesn't have.
func TestUnreadKinds(t *testing.T) {
	p := newProvisioned(t)
	p.set(gatewayYAML(`tls: {frontend: {default: {validation: {caCertificateRefs: [{group: certificates.k8s.io, kind: ClusterTrustBundle, name: clients}]}}}},
  listeners: [{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: later}]}}]`))
	check := func(claimed bool, message string) {
		t.Helper()
		p.Engine.View(func(c *flow.Ctx) {
			class, _ := flow.Get(c, p.ClassStatus, "gatehouse")
			claims := slices.ContainsFunc(class.SupportedFeatures, func(f gwv1.SupportedFeature) bool { return f.Name == "ClusterTrustBundle" })
			if claims != claimed || len(class.SupportedFeatures) < 50 {
				t.Errorf("the class claims ClusterTrustBundles: %t, and %d features in all", claims, len(class.SupportedFeatures))
			}
			gw, _ := flow.Get(c, p.GatewayStatus, object.Name{Namespace: "team", Name: "web"})
			found := false
			for _, condition := range gw.Listeners[0].Conditions {
				found = found || strings.Contains(condition.Message, message)
			}
			if !found {
				t.Errorf("the listener doesn't say %q: %v", message, gw.Listeners[0].Conditions)
			}
		})
	}
	check(true, "ClusterTrustBundle clients does not exist")
	p.Apply(source.Batch{Unread: map[string]string{"ClusterTrustBundle": "the cluster doesn't serve it"}})
	check(false, "ClusterTrustBundle clients can't be used, since no ClusterTrustBundles are read: the cluster doesn't serve it")
	p.Apply(source.Batch{Unread: map[string]string{"ClusterTrustBundle": ""}})
	check(true, "ClusterTrustBundle clients does not exist")
}
