package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
)

// What a status says of Gateways stays while a controller that starts can't compute it: others take their
// decisions by it, such as whether the names of a route's hosts are in the DNS.
func TestStatusesStayWhileNotComputed(t *testing.T) {
	in := install(t)
	r := in.start()
	in.apply(
		`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web}, spec: {gatewayClassName: gatehouse,
			allowedListeners: {namespaces: {from: Same}}, listeners: [{name: http, port: 80, protocol: HTTP}]}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: ListenerSet, metadata: {namespace: team, name: set}, spec: {parentRef: {name: web}, listeners: [{name: more, port: 81, protocol: HTTP}]}}`,
		`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: r}, spec: {parentRefs: [{name: web}, {kind: ListenerSet, name: set}]}}`,
		limitedTo(10))
	said := func() string {
		var route gwv1.HTTPRoute
		var policy v1alpha1.RateLimitPolicy
		if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "r"}, &route); err != nil {
			in.Fatal(err)
		}
		if err := in.client.Get(in.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, &policy); err != nil {
			in.Fatal(err)
		}
		var out []string
		for _, p := range route.Status.Parents {
			out = append(out, string(*p.ParentRef.Kind)+" "+p.Conditions[0].Reason)
		}
		for _, a := range policy.Status.Ancestors {
			out = append(out, string(a.AncestorRef.Name)+" "+a.Conditions[0].Reason)
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	const all = "Gateway Accepted, ListenerSet Accepted, web Accepted"
	in.until("all have a status", func() bool { return said() == all })
	for _, table := range []string{"topology-classes", "topology-gateways", "topology-sections", "topology-set-sections", "topology-routes", "route-status", "topology-rate-limit-policies", "rate-limit-policy-status"} {
		r.end()
		in.prepare = func(c *Cluster) {
			c.pipeline.Engine.Trip(func(of string, key any) {
				if k := fmt.Sprint(key); of == table && (strings.Contains(k, "team") || k == "gatehouse") {
					panic("told to")
				}
			})
		}
		r = in.start()
		in.until("the next replica leads", func() bool { return r.leads.Load() != nil })
		name := strings.ReplaceAll(table, "-", "")
		in.apply(fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, name), fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway,
			metadata: {namespace: %s, name: other}, spec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 80, protocol: HTTP}]}}`, name))
		if table != "topology-classes" { // which is of all Gateways
			in.until("another Gateway has a status", func() bool {
				var other gwv1.Gateway
				return in.client.Get(in.Context(), client.ObjectKey{Namespace: name, Name: "other"}, &other) == nil && len(other.Status.Listeners) > 0
			})
		}
		if now := said(); now != all {
			t.Errorf("%s fails: statuses say %s", table, now)
		}
	}
	r.end()
	in.prepare = nil
	r = in.start()
	in.apply(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: r}, spec: {parentRefs: [{name: web}]}}`)
	in.until("what is gone is taken out again", func() bool { return said() == "Gateway Accepted, web Accepted" })
}
