package schema

import (
	"errors"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
)

// TestUnknownKinds: what is nearly a kind of ours is a mistake, and all else is foreign.
func TestUnknownKinds(t *testing.T) {
	v, err := New(kind.All, false)
	if err != nil {
		t.Fatal(err)
	}
	const gateway = "gateway.networking.k8s.io/v1"
	for _, c := range []struct {
		apiVersion, kind string
		meant            string // "" for a foreign kind, "?" for a mistake of which nothing is meant
	}{
		{"v1", "Servce", "Service"},
		{"v1", "Secrt", "Secret"},
		{"v1", "ConfigMaps", "ConfigMap"},
		{"core/v1", "Service", "Service"},
		{"discovery.k8s.io/v1", "EndpointSlices", "EndpointSlice"},
		{"discovery.k8s.oi/v1", "EndpointSlice", "EndpointSlice"},
		{"v1", "HTTPRoute", "HTTPRoute"},
		{"v1", "HTTPRout", "HTTPRoute"},
		{"gateway.networking.k8s.io", "HTTPRoute", "HTTPRoute"},
		{"networking.k8s.io/v1", "HTTPRoute", "HTTPRoute"},
		{"gateway.networking.k8s.oi/v1", "Gatway", "Gateway"},
		{gateway, "GatewayParameters", "GatewayParameters"},
		{gateway, "Mesh", "?"},
		{"v1", "Node", ""},
		{"v1", "Event", ""},
		{"v1", "Endpoints", ""},
		{"v1", "ServiceAccount", ""},
		{"v1", "PersistentVolumeClaim", ""},
		{"v1", "Template", ""},
		{"apps/v1", "Deployment", ""},
		{"networking.k8s.io/v1", "Ingress", ""},
		{"networking.k8s.io/v1", "NetworkPolicy", ""},
		{"networking.k8s.io/v1", "ServiceCIDR", ""},
		{"networking.istio.io/v1", "Gateway", ""},
		{"networking.istio.io/v1", "ServiceEntry", ""},
		{"networking.x-k8s.io/v1alpha1", "HTTPRoute", ""},
		{"policy.linkerd.io/v1beta1", "HTTPRoute", ""},
		{"gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy", ""},
		{"gateway.envoyproxy.io/v1alpha1", "HTTPRouteFilter", ""},
		{"gateway.solo.io/v1", "Gateway", ""},
		{"configuration.konghq.com/v1", "TCPRoute", ""},
		{"multicluster.x-k8s.io/v1alpha1", "ServiceExport", ""},
		{"serving.knative.dev/v1", "Service", ""},
		{"external-secrets.io/v1", "Secret", ""},
		{"apiregistration.k8s.io/v1", "APIService", ""},
		{"certificates.k8s.io/v1", "CertificateSigningRequest", ""},
		{"my.example/v1", "Secrets", ""},
	} {
		_, err := v.Identify(map[string]any{"apiVersion": c.apiVersion, "kind": c.kind, "metadata": map[string]any{"name": "x"}})
		got := ""
		if unknown := new(UnknownKindError); errors.As(err, &unknown) {
			if got = "?"; unknown.meant != nil {
				got = unknown.meant.Kind.Name()
			}
		} else if !errors.Is(err, ErrForeign) {
			t.Errorf("%s %s: %v", c.apiVersion, c.kind, err)
		}
		if got != c.meant {
			t.Errorf("%s %s is taken for %q, want %q: %v", c.apiVersion, c.kind, got, c.meant, err)
		}
	}
}
