package topology

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

const fleet = `
kind: Gateway
metadata: {namespace: default, name: g}
spec:
  gatewayClassName: gatehouse
  listeners:
  - {name: http, port: 80, protocol: HTTP}
  - {name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}
---
kind: Secret
metadata: {namespace: default, name: cert}
data: {tls.crt: "${crt ecdsa}", tls.key: "${key ecdsa}"}`

func routeObject(n int) *gwv1.HTTPRoute {
	r := &gwv1.HTTPRoute{}
	r.Namespace, r.Name = "default", fmt.Sprintf("route-%05d", n)
	r.Spec.ParentRefs = []gwv1.ParentReference{{Name: "g", SectionName: new(gwv1.SectionName("http"))}}
	r.Spec.Hostnames = []gwv1.Hostname{gwv1.Hostname(fmt.Sprintf("host-%05d.test", n))}
	var ref gwv1.HTTPBackendRef
	ref.Name, ref.Port = gwv1.ObjectName(fmt.Sprintf("service-%05d", n)), new(int32(80))
	r.Spec.Rules = []gwv1.HTTPRouteRule{{BackendRefs: []gwv1.HTTPBackendRef{ref}}}
	return r
}

func serviceObject(n int) *corev1.Service {
	s := &corev1.Service{}
	s.Namespace, s.Name = "default", fmt.Sprintf("service-%05d", n)
	s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	return s
}

// populate makes a Gateway with n routes, each with its own host and Service.
func populate(t testing.TB, n int) *world {
	w := newWorld(settings{ImplicitClass: "gatehouse"}.options())
	objects := decode(t, fleet)
	for i := range n {
		objects = append(objects, routeObject(i), serviceObject(i))
	}
	w.set(t, objects...)
	return w
}

// runs returns how many units of work each table has run.
func (w *world) runs() map[string]uint64 {
	out := map[string]uint64{}
	for _, s := range w.engine.Stats() {
		out[s.Table] = s.Runs
	}
	return out
}

// costs sets an object, and checks how many units of work tables run for it.
func (w *world) costs(t *testing.T, what string, o source.Object, tables []string, want []uint64) {
	t.Helper()
	before := w.runs()
	w.set(t, o)
	after := w.runs()
	for i, table := range tables {
		if got := after[table] - before[table]; got != want[i] {
			t.Errorf("%s: %s: %d units ran, want %d", what, table, got, want[i])
		}
	}
}

// TestChangesTouchWhatTheyConcern protects the cost of a change: how many units
// of the tables with an entry a route run for it.
func TestChangesTouchWhatTheyConcern(t *testing.T) {
	const n = 100
	perRoute := []string{"topology-routes", "topology-parents", "topology-attachments"}
	gateway := func(change func(*gwv1.Gateway)) func(*testing.T) source.Object {
		return func(t *testing.T) source.Object {
			gw := decode(t, fleet)[0].(*gwv1.Gateway)
			change(gw)
			return gw
		}
	}
	for _, test := range []struct {
		name   string
		object func(t *testing.T) source.Object
		want   [3]uint64 // runs of perRoute
	}{
		{"a route's edit", func(*testing.T) source.Object {
			r := routeObject(7)
			r.Spec.Rules[0].BackendRefs[0].Name = "service-00008"
			return r
		}, [3]uint64{1, 1, 0}},
		{"a route's new host", func(*testing.T) source.Object {
			r := routeObject(7)
			r.Spec.Hostnames[0] = "another.test"
			return r
		}, [3]uint64{1, 1, 1}},
		{"a Service", func(*testing.T) source.Object { return serviceObject(7) }, [3]uint64{1, 0, 0}},
		{"a rotated certificate", func(t *testing.T) source.Object {
			p := makePair(t, "other")
			s := &corev1.Secret{Data: map[string][]byte{"tls.crt": p.crt, "tls.key": p.key}}
			s.Namespace, s.Name = "default", "cert"
			return s
		}, [3]uint64{}},
		{"a Secret that nobody refers to", func(*testing.T) source.Object {
			s := &corev1.Secret{}
			s.Namespace, s.Name = "default", "unrelated"
			return s
		}, [3]uint64{}},
		{"a BackendTLSPolicy", func(*testing.T) source.Object {
			p := &gwv1.BackendTLSPolicy{}
			p.Namespace, p.Name = "default", "p"
			var target gwv1.LocalPolicyTargetReferenceWithSectionName
			target.Kind, target.Name = "Service", "service-00007"
			p.Spec.TargetRefs = []gwv1.LocalPolicyTargetReferenceWithSectionName{target}
			p.Spec.Validation.Hostname = "x.test"
			return p
		}, [3]uint64{1, 0, 0}},
		{"a Gateway's status", gateway(func(*gwv1.Gateway) {}), [3]uint64{}},
		{"a Gateway's address", gateway(func(gw *gwv1.Gateway) {
			gw.Spec.Addresses = []gwv1.GatewaySpecAddress{{Value: "127.0.0.1"}}
		}), [3]uint64{}},
		{"a Gateway that becomes a default one", gateway(func(gw *gwv1.Gateway) {
			gw.Spec.DefaultScope = gwv1.GatewayDefaultScopeAll
		}), [3]uint64{1, 1, 1}},
		{"a listener's hostname", gateway(func(gw *gwv1.Gateway) {
			gw.Spec.Listeners[1].Hostname = new(gwv1.Hostname("x.test"))
		}), [3]uint64{0, n, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := populate(t, n)
			asking := routeObject(n)
			asking.Spec.ParentRefs, asking.Spec.UseDefaultGateways = nil, gwv1.GatewayDefaultScopeAll
			w.set(t, asking)
			w.costs(t, test.name, test.object(t), perRoute, test.want[:])
		})
	}
}

// TestForeignObjectsLeaveNothing protects that routes and Gateways of other
// controllers cost one look.
func TestForeignObjectsLeaveNothing(t *testing.T) {
	w := newWorld(settings{}.options())
	objects := decode(t, fleet)
	for i := range 10 {
		objects = append(objects, routeObject(i), serviceObject(i))
	}
	w.set(t, objects...)
	for _, s := range w.engine.Stats() {
		if strings.HasPrefix(s.Table, "topology-") && s.Entries > 0 {
			t.Errorf("%s has %d entries", s.Table, s.Entries)
		}
	}
}

// TestMemoryPerRoute bounds what a route with its Service costs in all tables, the
// inputs' among them and the objects themselves not counted.
func TestMemoryPerRoute(t *testing.T) {
	const n, most = 2000, 2 << 10
	objects := decode(t, fleet)
	for i := range n {
		objects = append(objects, routeObject(i), serviceObject(i))
	}
	before := heap()
	w := newWorld(settings{ImplicitClass: "gatehouse"}.options())
	w.set(t, objects...)
	perRoute := (heap() - before) / n
	runtime.KeepAlive(w)
	runtime.KeepAlive(objects)
	t.Logf("%d bytes a route", perRoute)
	if perRoute > most {
		t.Errorf("%d bytes a route, at most %d are allowed", perRoute, most)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkRouteEdit measures one edited route among many.
func BenchmarkRouteEdit(b *testing.B) {
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := populate(b, n)
			edits := [2]*gwv1.HTTPRoute{routeObject(7), routeObject(7)}
			edits[1].Spec.Hostnames[0] = "another.test"
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.engine.Update(func(tx *flow.Tx) {
					w.in.Apply(tx, source.Batch{Set: []source.Object{edits[i%2]}})
				})
			}
		})
	}
}
