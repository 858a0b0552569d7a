package topology_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// What the benchmarks are about: 1,000 routes of 5 rules each on one Gateway with four
// listeners, with policies on the Gateway, on each tenth route, and on a rule of each
// hundredth.
const (
	benchRoutes = 1000
	benchRules  = 5
)

func benchObjects() []topology.Object {
	gw := &gwv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g"}}
	gw.Spec.GatewayClassName = "any"
	for i := range 4 {
		host := gwv1.Hostname(fmt.Sprintf("*.l%d.example.com", i))
		gw.Spec.Listeners = append(gw.Spec.Listeners, gwv1.Listener{
			Name: gwv1.SectionName(fmt.Sprint("l", i)), Port: 80, Protocol: gwv1.HTTPProtocolType, Hostname: &host,
		})
	}
	objects := []topology.Object{
		&gwv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "any"}, Spec: gwv1.GatewayClassSpec{ControllerName: "example.com/anybody"}},
		gw, benchPolicy("gateway", 0, "Gateway", "g", "", "red"),
	}
	for i := range benchRoutes {
		r := &gwv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("r", i)}}
		r.Spec.ParentRefs = []gwv1.ParentReference{{Name: "g"}}
		r.Spec.Hostnames = []gwv1.Hostname{gwv1.Hostname(fmt.Sprintf("h%d.l%d.example.com", i, i%4))}
		for j := range benchRules {
			name := gwv1.SectionName(fmt.Sprint("n", j))
			r.Spec.Rules = append(r.Spec.Rules, gwv1.HTTPRouteRule{Name: &name})
		}
		objects = append(objects, r)
		if i%10 == 0 {
			objects = append(objects, benchPolicy(fmt.Sprint("route", i), i, "HTTPRoute", r.Name, "", "blue"))
		}
		if i%100 == 0 {
			objects = append(objects, benchPolicy(fmt.Sprint("rule", i), i, "HTTPRoute", r.Name, "n2", "green"))
		}
	}
	return objects
}

func benchPolicy(name string, age int, kind, target, section, shade string) *ColorPolicy {
	p := &ColorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(age), 0))}}
	ref := targetRef(topology.GatewayGroup, kind, target)
	if section != "" {
		name := gwv1.SectionName(section)
		ref.SectionName = &name
	}
	p.Spec.TargetRefs = []gwv1.LocalPolicyTargetReferenceWithSectionName{ref}
	p.Spec.Merge = true
	p.Spec.Colors = map[string]string{"a": shade, "b": shade, shade: shade}
	return p
}

func benchWorld(objects []topology.Object) *world {
	g := topology.New(topology.Options{})
	w := &world{Graph: g, colors: topology.AddPolicies(g, colors(false))}
	w.Update(func(tx *topology.Tx) {
		if err := tx.Set(objects...); err != nil {
			panic(err)
		}
	})
	return w
}

// effectiveOfAll asks for what is in force on every path.
func (w *world) effectiveOfAll() (rules int) {
	for _, p := range w.Paths(topology.Node{}) {
		e := w.colors.Effective(p)
		if _, ok := e.Rule("a"); ok {
			rules++
		}
	}
	return rules
}

// BenchmarkFromNothing makes the graph of 5,000 rules and asks for what is in force on each.
func BenchmarkFromNothing(b *testing.B) {
	objects := benchObjects()
	b.ReportAllocs()
	for b.Loop() {
		if n := benchWorld(objects).effectiveOfAll(); n != benchRoutes*benchRules {
			b.Fatal(n)
		}
	}
}

// BenchmarkEffective asks a graph of 5,000 rules for what is in force on each.
func BenchmarkEffective(b *testing.B) {
	w := benchWorld(benchObjects())
	b.ReportAllocs()
	for b.Loop() {
		if n := w.effectiveOfAll(); n != benchRoutes*benchRules {
			b.Fatal(n)
		}
	}
}

// BenchmarkPolicyChanges changes a policy of a graph of 5,000 rules, and asks for the paths
// that are concerned.
func BenchmarkPolicyChanges(b *testing.B) {
	shades := [2]string{"black", "white"}
	for _, c := range []struct {
		of            string
		kind, target  string
		section, name string
		want          int
	}{
		{"rule", "HTTPRoute", "r0", "n2", "rule0", 1},
		{"route", "HTTPRoute", "r0", "", "route0", benchRules},
		{"gateway", "Gateway", "g", "", "gateway", benchRoutes * benchRules},
	} {
		b.Run(c.of, func(b *testing.B) {
			w := benchWorld(benchObjects())
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n++
				p := benchPolicy(c.name, 0, c.kind, c.target, c.section, shades[n%2])
				ch := w.Update(func(tx *topology.Tx) { _ = tx.Set(p) })
				if got := len(w.colors.Changes(ch)); got != c.want {
					b.Fatal(got)
				}
			}
		})
	}
}
