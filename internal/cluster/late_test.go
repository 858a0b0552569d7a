package cluster

import (
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
)

// unresolved follows the statuses of routes, and says of which ResolvedRefs was ever False.
func (in *installed) unresolved() (was func(route string) bool) {
	in.Helper()
	c, err := client.NewWithWatch(rest.CopyConfig(in.Config), client.Options{Scheme: in.client.Scheme()})
	if err != nil {
		in.Fatal(err)
	}
	watch, err := c.Watch(in.Context(), &gwv1.HTTPRouteList{})
	if err != nil {
		in.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range watch.ResultChan() {
			if r, ok := e.Object.(*gwv1.HTTPRoute); ok && resolvedRefs(r).Status == metav1.ConditionFalse {
				mu.Lock()
				seen[r.Name] = true
				mu.Unlock()
			}
		}
	}()
	in.Cleanup(func() { watch.Stop(); <-done })
	return func(route string) bool {
		mu.Lock()
		defer mu.Unlock()
		return seen[route]
	}
}

func resolvedRefs(r *gwv1.HTTPRoute) metav1.Condition {
	for _, p := range r.Status.Parents {
		if c, ok := condition.Find(p.Conditions, string(gwv1.RouteConditionResolvedRefs)); ok {
			return c
		}
	}
	return metav1.Condition{}
}

// A route that is heard of before its Service and its first EndpointSlice is in force with
// them, whether it is new or changed. What never comes is reported after a while.
func TestRouteWaitsForItsService(t *testing.T) {
	in := install(t)
	in.apply(gatewayOf("gatehouse"))
	in.start()
	unresolved := in.unresolved()
	route := func(name, service string) string {
		return `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: ` + name + `},
			spec: {parentRefs: [{name: web}], hostnames: [` + name + `.test], rules: [{backendRefs: [{name: ` + service + `, port: 80}]}]}}`
	}
	service := func(name string) string {
		return `{apiVersion: v1, kind: Service, metadata: {namespace: team, name: ` + name + `}, spec: {clusterIP: None, ports: [{port: 80}]}}`
	}
	slice := func(name string) string {
		return `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: team, name: ` + name + `, labels: {kubernetes.io/service-name: ` + name + `}},
			addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: [192.0.2.1]}]}`
	}
	resolved := func(name, status string) {
		t.Helper()
		in.until("ResolvedRefs of "+name+" is "+status, func() bool {
			r := &gwv1.HTTPRoute{}
			if err := in.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: name}, r); err != nil {
				t.Fatal(err)
			}
			c := resolvedRefs(r)
			return string(c.Status) == status && c.ObservedGeneration == r.Generation
		})
	}
	inTime := 0
	for i := 0; inTime < 3; i++ {
		if i == 20 {
			t.Fatal("the API server is too slow for this test")
		}
		name := fmt.Sprint("new-", i)
		for _, to := range []string{name, name + "-too"} { // a new route, then an edit of it
			begun := time.Now()
			in.apply(route(name, to))
			in.apply(service(to), slice(to))
			took := time.Since(begun)
			resolved(name, "True")
			if took > lateBy/2 {
				continue // it may have waited for long enough
			}
			inTime++
			if unresolved(name) {
				t.Fatalf("route %s was in force without Service %s, which came %s after it", name, to, took)
			}
		}
	}
	in.apply(route("missing", "missing"))
	resolved("missing", "False")
}
