package topology

import (
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwxv1alpha1 "sigs.k8s.io/gateway-api/apisx/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// decode reads objects, each into its Go type.
func decode(t testing.TB, text string) []source.Object {
	t.Helper()
	var out []source.Object
	for doc := range strings.SplitSeq(expandPairs(t, text), "\n---\n") {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(doc), &meta); err != nil {
			t.Fatal(err)
		}
		var o source.Object
		switch meta.Kind {
		case "GatewayClass":
			o = &gwv1.GatewayClass{}
		case "Gateway":
			o = &gwv1.Gateway{}
		case "ListenerSet":
			o = &gwv1.ListenerSet{}
		case "HTTPRoute":
			o = &gwv1.HTTPRoute{}
		case "GRPCRoute":
			o = &gwv1.GRPCRoute{}
		case "ReferenceGrant":
			o = &gwv1.ReferenceGrant{}
		case "Service":
			o = &corev1.Service{}
		case "Secret":
			o = &corev1.Secret{}
		case "ConfigMap":
			o = &corev1.ConfigMap{}
		case "Namespace":
			o = &corev1.Namespace{}
		case "EndpointSlice":
			o = &discoveryv1.EndpointSlice{}
		case "BackendTLSPolicy":
			o = &gwv1.BackendTLSPolicy{}
		case "ClusterTrustBundle":
			o = &certificatesv1.ClusterTrustBundle{}
		case "TLSRoute":
			o = &gwv1.TLSRoute{}
		case "TCPRoute":
			o = &gwv1.TCPRoute{}
		case "UDPRoute":
			o = &gwv1.UDPRoute{}
		case "XBackend":
			o = &gwxv1alpha1.XBackend{}
		case "XBackendTrafficPolicy":
			o = &gwxv1alpha1.XBackendTrafficPolicy{}
		case "GatewayParameters":
			o = &v1alpha1.GatewayParameters{}
		default:
			t.Fatalf("no type for kind %q in:\n%s", meta.Kind, doc)
		}
		if err := yaml.UnmarshalStrict([]byte(doc), o); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		out = append(out, o)
	}
	return out
}
