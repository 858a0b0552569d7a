package topology_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// quota is a policy without a Go type: {target: {kind: …, name: …}, limits: {name: value}}.
func quota(name, kind, target string, limits map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "QuotaPolicy", "metadata": map[string]any{"namespace": "shop", "name": name},
		"spec": map[string]any{"target": map[string]any{"kind": kind, "name": target}, "limits": limits},
	}}
}

var quotas = topology.Kind[*unstructured.Unstructured, any]{
	Group: "example.com", Kind: "QuotaPolicy",
	Targets: func(o *unstructured.Unstructured) []topology.Target {
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "target", "kind")
		name, _, _ := unstructured.NestedString(o.Object, "spec", "target", "name")
		return []topology.Target{{Group: topology.GatewayGroup, Kind: kind, Name: name}}
	},
	Spec: func(o *unstructured.Unstructured) (topology.Spec[any], error) {
		limits, _, err := unstructured.NestedMap(o.Object, "spec", "limits")
		return topology.Spec[any]{Strategy: topology.MergeDefaults, Rules: limits}, err
	},
}

// What two policies say together for the rules of a route, and where each part comes from.
func Example() {
	g := topology.New(topology.Options{})
	policies := topology.AddPolicies(g, quotas)

	class := &gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: gwv1.GatewayClassSpec{ControllerName: "example.com/any"}}
	gateway := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	gateway.Spec.GatewayClassName = "edge"
	gateway.Spec.Listeners = []gwv1.Listener{{Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType}}
	route := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
	route.Spec.ParentRefs = []gwv1.ParentReference{{Name: "web"}}
	route.Spec.Rules = []gwv1.HTTPRouteRule{{}}

	changes := g.Update(func(tx *topology.Tx) {
		err := tx.Set(class, gateway, route,
			quota("all", "Gateway", "web", map[string]any{"requests": int64(100), "connections": int64(10)}),
			quota("cart", "HTTPRoute", "cart", map[string]any{"requests": int64(5)}))
		if err != nil {
			fmt.Println(err)
		}
	})

	for _, c := range policies.Changes(changes) {
		fmt.Println(c.Path)
		for _, r := range c.After.Rules() {
			fmt.Printf("  %s: %v from %s on %s\n", r.Name, r.Rule, r.From.Policy, r.From.Target)
		}
	}
	// Output:
	// rule rule-1 of HTTPRoute shop/cart on listener http of Gateway shop/web
	//   connections: 10 from QuotaPolicy shop/all on Gateway shop/web
	//   requests: 5 from QuotaPolicy shop/cart on HTTPRoute shop/cart
}

// What a policy's author is to be told: where it is in force, and who took its place.
func ExamplePolicies_Ancestors() {
	g := topology.New(topology.Options{})
	policies := topology.AddPolicies(g, quotas)
	g.Update(func(tx *topology.Tx) {
		_ = tx.Set(quota("lost", "HTTPRoute", "nonesuch", map[string]any{"requests": int64(5)}))
	})
	for _, a := range policies.Ancestors("shop", "lost") {
		fmt.Println(a.Of, a.Accepted.Reason)
		fmt.Println(a.Accepted.Message)
	}
	// Output:
	// HTTPRoute shop/nonesuch TargetNotFound
	// HTTPRoute shop/nonesuch does not exist; create it or correct targetRefs
}
