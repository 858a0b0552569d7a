package topology

import (
	"fmt"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

const setFleet = `
kind: Gateway
metadata: {namespace: default, name: g}
spec:
  gatewayClassName: gatehouse
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: alone, port: 81, protocol: HTTP}`

func setObject(n int) *gwv1.ListenerSet {
	s := &gwv1.ListenerSet{}
	s.Namespace, s.Name = "default", fmt.Sprintf("set-%05d", n)
	s.Spec.ParentRef.Name = "g"
	s.Spec.Listeners = []gwv1.ListenerEntry{{
		Name: "http", Port: 80, Protocol: gwv1.HTTPProtocolType, Hostname: new(gwv1.Hostname(fmt.Sprintf("host-%05d.test", n))),
	}}
	return s
}

// setRouteObject returns a route for the host of the n-th set, on that set.
func setRouteObject(n int) *gwv1.HTTPRoute {
	r := routeObject(n)
	r.Name = "on-" + setObject(n).Name
	r.Spec.ParentRefs = []gwv1.ParentReference{{
		Kind: new(gwv1.Kind(listenerSetKind)), Name: gwv1.ObjectName(setObject(n).Name),
	}}
	return r
}

// TestSetsTouchWhatTheyConcern protects the cost of a change to ListenerSets: how
// many units run where there is an entry for each route or each set.
func TestSetsTouchWhatTheyConcern(t *testing.T) {
	const n = 100
	tables := []string{"topology-parents", "topology-set-sections", "topology-listener-sets", "topology-gateways"}
	edited := func(change func(*gwv1.ListenerSet)) source.Object {
		s := setObject(7)
		change(s)
		return s
	}
	gateway := func(change func(*gwv1.Gateway)) source.Object {
		gw := decode(t, setFleet)[0].(*gwv1.Gateway)
		change(gw)
		return gw
	}
	for _, test := range []struct {
		name   string
		object source.Object
		want   [4]uint64 // runs of tables
	}{
		{"a set more", setObject(n), [4]uint64{0, 1, 1, 0}},
		{"a set's status", edited(func(*gwv1.ListenerSet) {}), [4]uint64{0, 1, 1, 0}},
		{"a set's namespaces", edited(func(s *gwv1.ListenerSet) {
			s.Spec.Listeners[0].AllowedRoutes = &gwv1.AllowedRoutes{Namespaces: &gwv1.RouteNamespaces{From: new(gwv1.NamespacesFromAll)}}
		}), [4]uint64{1, 1, 1, 0}},
		{"a set's hostname", edited(func(s *gwv1.ListenerSet) { s.Spec.Listeners[0].Hostname = new(gwv1.Hostname("new.test")) }), [4]uint64{2, 1, 1, 0}},
		{"a Gateway's status", gateway(func(*gwv1.Gateway) {}), [4]uint64{0, 0, 0, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(settings{ImplicitClass: "gatehouse"}.options())
			objects := decode(t, setFleet)
			for i := range n {
				// Half of the routes are on the Gateway, for the hosts of sets.
				objects = append(objects, setObject(i), setRouteObject(i), routeObject(i))
			}
			w.set(t, objects...)
			w.costs(t, test.name, test.object, tables, test.want[:])
		})
	}
}

// TestOverlappingSetsRunNoOthers protects the cost of a set whose hostnames overlap with
// those of many others: it is the first one on a wildcard's host that makes a
// difference to the wildcard.
func TestOverlappingSetsRunNoOthers(t *testing.T) {
	const n = 100
	const fleet = `
kind: Gateway
metadata: {namespace: default, name: g}
spec:
  gatewayClassName: gatehouse
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: all, port: 443, protocol: HTTPS, hostname: "*.test"}`
	encrypted := func(i int) *gwv1.ListenerSet {
		s := setObject(i)
		s.Spec.Listeners[0].Port, s.Spec.Listeners[0].Protocol = 443, gwv1.HTTPSProtocolType
		return s
	}
	w := newWorld(settings{ImplicitClass: "gatehouse"}.options())
	objects := decode(t, fleet)
	for i := range n {
		objects = append(objects, encrypted(i))
	}
	wide := encrypted(n + 1)
	wide.Spec.Listeners[0].Hostname = nil
	w.set(t, append(objects, wide)...)
	before := w.runs()
	w.set(t, encrypted(n))
	after := w.runs()
	for table, want := range map[string]uint64{"topology-listener-sets": 1, "topology-gateways": 0} {
		if got := after[table] - before[table]; got != want {
			t.Errorf("%s: %d units ran, want %d", table, got, want)
		}
	}
}
