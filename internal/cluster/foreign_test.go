package cluster

import (
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

const securityPolicies = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: securitypolicies.gateway.envoyproxy.io}
spec:
  group: gateway.envoyproxy.io
  names: {kind: SecurityPolicy, plural: securitypolicies}
  scope: Namespaced
  versions: [{name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// Who protects a Gateway of ours with a policy of another implementation is told that it has no effect, in an Event and
// among the problems, as long as it targets the Gateway and the kind is there.
func TestForeignPolicies(t *testing.T) {
	in := install(t)
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(in.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	in.apply(gatewayOf("gatehouse"))
	r := in.start()
	problems := func() (out []string) {
		r.pipeline.Engine.View(func(ctx *flow.Ctx) {
			r.pipeline.AllProblems(ctx, func(p source.Problem) {
				if p.Reason == source.NoEffect {
					out = append(out, p.Error())
				}
			})
		})
		return out
	}

	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(securityPolicies), definition); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	policy := func(name, gateway string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy",
			"spec": map[string]any{"targetRefs": []any{map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": gateway}}},
		}}
		o.SetNamespace("team")
		o.SetName(name)
		return o
	}
	in.until("the kind can be written", func() bool { return c.Create(t.Context(), policy("guard", "web")) == nil })
	if err := c.Create(t.Context(), policy("other", "theirs")); err != nil {
		t.Fatal(err)
	}
	in.until("it is a problem", func() bool { return len(problems()) == 1 })
	if text := problems()[0]; !strings.Contains(text, "team/guard") || !strings.Contains(text, "Envoy Gateway") || !strings.Contains(text, "Gateway team/web") {
		t.Errorf("the problem is %s", text)
	}
	in.until("an Event says so", func() bool {
		list := &eventsv1.EventList{}
		if err := in.client.List(t.Context(), list, client.InNamespace("team")); err != nil {
			t.Fatal(err)
		}
		told := 0
		for _, e := range list.Items {
			if e.Regarding.Kind == "SecurityPolicy" && e.Reason == "NoEffect" {
				told++
				if e.Regarding.Name != "guard" {
					t.Fatalf("an Event is about %s", e.Regarding.Name)
				}
			}
		}
		return told > 0
	})

	live := policy("guard", "web")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(live.Object, nil, "spec", "targetRefs"); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	in.until("it targets nothing any more", func() bool { return len(problems()) == 0 })
	if err := c.Create(t.Context(), policy("second", "web")); err != nil {
		t.Fatal(err)
	}
	in.until("another one is a problem", func() bool { return len(problems()) == 1 })
	if err := c.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	in.until("the kind is gone", func() bool { return len(problems()) == 0 })
}
