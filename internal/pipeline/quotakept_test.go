package pipeline

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// TestQuotasOutliveMistakes protects who shares a Gateway while the parameters of its class
// can't be used: what the class allowed stays in force, in the next controller too. One that
// knows nothing of it lets other namespaces have no hosts.
func TestQuotasOutliveMistakes(t *testing.T) {
	objects := sharedGateway(&v1alpha1.Quotas{Hosts: new(int32(1)), Listeners: new(int32(1))})
	objects[1].(*v1alpha1.GatewayParameters).Spec.Allow.Addresses = []string{"198.51.100.0/24"}
	set := &gwv1.ListenerSet{}
	set.Namespace, set.Name = "a", "set"
	set.Spec.ParentRef = gwv1.ParentGatewayReference{Name: "shared", Namespace: new(gwv1.Namespace("infra"))}
	for _, name := range []gwv1.SectionName{"one", "two"} {
		set.Spec.Listeners = append(set.Spec.Listeners, gwv1.ListenerEntry{
			Name: name, Port: 80, Protocol: gwv1.HTTPProtocolType, Hostname: new(gwv1.Hostname(name + ".set.example")),
		})
	}
	objects = append(objects, set,
		tenantRoute("a", "old", 1, 1, "old.a.example"),
		tenantRoute("a", "new", 2, 1, "new.a.example"),
		tenantRoute("infra", "own", 3, 1, "own.infra.example"))
	broken := objects[1].(*v1alpha1.GatewayParameters).DeepCopy()
	broken.Spec.Allow = &v1alpha1.Allow{Addresses: []string{"not a range"}}

	gateway := object.Name{Namespace: "infra", Name: "shared"}
	check := func(t *testing.T, p *Pipeline) {
		t.Helper()
		p.Engine.View(func(c *flow.Ctx) {
			accepted := func(namespace, name string) bool {
				s, ok := flow.Get(c, p.RouteStatus, object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: namespace, Name: name}})
				return ok && len(s.Parents) == 1 && s.Parents[0].Conditions[0].Status == metav1.ConditionTrue
			}
			if !accepted("infra", "own") {
				t.Error("the route in the Gateway's namespace is not accepted")
			}
			if !accepted("a", "old") {
				t.Error("the route within the quota is not accepted")
			}
			if accepted("a", "new") {
				t.Error("the route over the quota is accepted")
			}
			for k := range flow.All(c, p.Hosts) {
				if k.Domain == "one.set.example" {
					t.Error("the ListenerSet over the quota has a host")
				}
			}
			if s, ok := flow.Get(c, p.ListenerSetStatus, object.Name{Namespace: "a", Name: "set"}); !ok || s.Conditions[0].Status == metav1.ConditionTrue {
				t.Errorf("the ListenerSet over the quota: %+v", s.Conditions)
			}
		})
	}
	start := func() *Pipeline { return New(Provisioned("x", "", nil)) }
	apply := func(p *Pipeline, objects ...source.Object) { p.Updates(p.Apply(source.Batch{Set: objects})) }

	p := start()
	apply(p, objects...)
	check(t, p)
	apply(p, broken)
	t.Run("same controller", func(t *testing.T) {
		check(t, p)
		p.Engine.View(func(c *flow.Ctx) {
			gw, _ := flow.Get(c, p.Graph.Gateways, gateway)
			if !gw.Frozen || gw.Allow == nil || len(gw.Allow.Addresses) != 1 {
				t.Errorf("frozen %t, allows %+v", gw.Frozen, gw.Allow)
			}
		})
	})

	kept := map[object.Name]*parameters.Kept{}
	p.Engine.View(func(c *flow.Ctx) {
		maps.Insert(kept, flow.All(c, p.Kept))
	})
	text, _, err := parameters.Encode(kept, parameters.MaxKept)
	if err != nil {
		t.Fatal(err)
	}
	if kept, err = parameters.Decode(text); err != nil || len(kept) != 1 {
		t.Fatalf("%d Gateways are kept, %v: %s", len(kept), err, text)
	}
	objects[1] = broken
	t.Run("next controller", func(t *testing.T) {
		next := start()
		next.Seed(kept)
		apply(next, objects...)
		check(t, next)
	})
}
