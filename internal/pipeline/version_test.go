package pipeline

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Definitions of a version that we don't know stop all changes, not what is served;
// what came meanwhile takes effect when they are right again.
func TestUnknownVersionHoldsChanges(t *testing.T) {
	p := New(Options{Topology: topology.Options{ControllerName: ControllerName}})
	definition := func(version string) source.Object {
		return &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
			ObjectMeta: metav1.ObjectMeta{Name: "gateways.gateway.networking.k8s.io", Annotations: map[string]string{
				consts.BundleVersionAnnotation: version,
			}},
		}
	}
	class := &gwv1.GatewayClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: gwv1.GroupVersion.String(), Kind: "GatewayClass"},
		ObjectMeta: metav1.ObjectMeta{Name: "ours"},
		Spec:       gwv1.GatewayClassSpec{ControllerName: ControllerName},
	}
	gateway := func(name string) *gwv1.Gateway {
		return &gwv1.Gateway{
			TypeMeta:   metav1.TypeMeta{APIVersion: gwv1.GroupVersion.String(), Kind: "Gateway"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
			Spec: gwv1.GatewaySpec{GatewayClassName: "ours", Listeners: []gwv1.Listener{{
				Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType,
			}}},
		}
	}
	check := func(when, accepted, supported string, gateways ...string) {
		t.Helper()
		p.Engine.View(func(c *flow.Ctx) {
			s, _ := flow.Get(c, p.ClassStatus, "ours")
			var got []string
			for _, condition := range s.Conditions {
				got = append(got, condition.Type+"="+string(condition.Status)+"/"+condition.Reason)
			}
			want := []string{"Accepted=" + accepted, "SupportedVersion=" + supported}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: conditions are %v, want %v", when, got, want)
			}
			n := 0
			for range flow.All(c, p.Graph.Gateways) {
				n++
			}
			for _, name := range gateways {
				gw, ok := flow.Get(c, p.Graph.Gateways, object.Name{Namespace: "ns", Name: name})
				if !ok || n != len(gateways) {
					t.Errorf("%s: there are %d Gateways, want %v", when, n, gateways)
				} else if !gw.Listeners[0].Serves {
					t.Errorf("%s: %s is not served: %v", when, name, gw.Accepted)
				}
			}
			if len(gateways) == 0 && n > 0 {
				t.Errorf("%s: there are %d Gateways, want none", when, n)
			}
		})
	}

	set := func(objects ...source.Object) { p.Apply(source.Batch{Set: objects}) }
	set(gateway("a"), class, definition("v2.0.0"))
	check("at the start with another major version", "False/UnsupportedVersion", "False/UnsupportedVersion")
	set(definition("v1.7.3"))
	check("with our minor version", "True/Accepted", "True/SupportedVersion", "a")
	set(definition("v1.6.1"))
	check("with another minor version", "True/Accepted", "False/UnsupportedVersion", "a")
	set(definition(""))
	p.Apply(source.Batch{Set: []source.Object{gateway("b"), gateway("c")}, Deleted: []object.Key{source.KeyOf(gateway("a"))}})
	p.Apply(source.Batch{Deleted: []object.Key{source.KeyOf(gateway("c"))}})
	check("without a version", "False/UnsupportedVersion", "False/UnsupportedVersion", "a")
	if !p.VersionRefused() {
		t.Error("the refusal is not told")
	}
	set(definition(consts.BundleVersion))
	check("right again", "True/Accepted", "True/SupportedVersion", "b")
}
