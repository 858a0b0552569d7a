package topology_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// changed writes what an update has changed.
func (w *world) changed(ch *topology.Changes) string {
	var out []string
	for _, c := range w.colors.Changes(ch) {
		out = append(out, fmt.Sprintf("%s: %s -> %s", print(c.Path), inForce(c.Before), inForce(c.After)))
	}
	return strings.Join(out, "\n")
}

// TestChanges holds that an update tells exactly the paths on which something is different.
func TestChanges(t *testing.T) {
	w := newWorld(t, false, gep())
	policy := func(name string) topology.Node { return w.colors.Node("ns", name) }
	for _, step := range []struct {
		what    string
		set     []string
		deleted []topology.Node
		want    []string
	}{
		{what: "a Gateway's policy", set: []string{color("p1", "Gateway", "g1", "colors: {a: 1}")}, want: []string{"g1 r1:  -> a=1(p1)", "g1 r2:  -> a=1(p1)"}},
		{what: "a route's policy", set: []string{color("p2", "HTTPRoute", "r2", "colors: {a: 2}")}, want: []string{"g1 r2: a=1(p1) -> a=2(p2)"}},
		{what: "the same again", set: []string{color("p2", "HTTPRoute", "r2", "colors: {a: 2}")}},
		{
			what: "the Gateway's policy, which is told on the other route who took its place",
			set:  []string{color("p1", "Gateway", "g1", "colors: {a: 3}")}, want: []string{"g1 r1: a=1(p1) -> a=3(p1)"},
		},
		{what: "a policy for what does not exist", set: []string{color("p3", "HTTPRoute", "r5", "colors: {a: 5}")}},
		{what: "its target", set: []string{route("r5", "g1", ", rules: [{}, {name: x}]")}, want: []string{"g1 r5:  -> a=5(p3)", "g1 r5 x:  -> a=5(p3)"}},
		{what: "a rule is gone", set: []string{route("r5", "g1", ", rules: [{}]")}, want: []string{"g1 r5 x: a=5(p3) -> "}},
		{what: "a rule's policy", set: []string{color("p4", "HTTPRoute", "r5#y", "colors: {a: 6}")}},
		{what: "the rule gets its name", set: []string{route("r5", "g1", ", rules: [{name: y}]")}, want: []string{"g1 r5: a=5(p3) -> a=6(p4)"}},
		{
			what: "a route moves", set: []string{route("r5", "g2", ", rules: [{name: y}]")},
			want: []string{"g1 r5: a=6(p4) -> ", "g2 r5:  -> a=6(p4)"},
		},
		{what: "a policy goes", deleted: []topology.Node{policy("p4")}, want: []string{"g2 r5: a=6(p4) -> a=5(p3)"}},
		{what: "a route goes", deleted: []topology.Node{topology.HTTPRoute("ns", "r5")}, want: []string{"g2 r5: a=5(p3) -> "}},
		{what: "a Gateway goes", deleted: []topology.Node{topology.Gateway("ns", "g1")}, want: []string{"g1 r1: a=3(p1) -> ", "g1 r2: a=2(p2) -> "}},
	} {
		if got, want := w.changed(w.update(t, w.objects(t, step.set...), step.deleted...)), strings.Join(step.want, "\n"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", step.what, got, want)
		}
	}
}

// TestNodes holds what is above and below what.
func TestNodes(t *testing.T) {
	w := newWorld(t, false, class, gateway("g", ""), service("s"), color("p", "HTTPRoute", "gone", "colors: {}"),
		route("r", "g", ", rules: [{name: first, backendRefs: [{name: s, port: 80}, {name: t, port: 80}]}, {}]"),
		route("lost", "nobody", ", rules: [{}]"))
	g, r, s := topology.Gateway("ns", "g"), topology.HTTPRoute("ns", "r"), topology.Service("ns", "s")
	for _, c := range []struct {
		of                topology.Node
		parents, children string
	}{
		{topology.GatewayClass("any"), "", "Gateway ns/g"},
		{g, "GatewayClass any", "listener http of Gateway ns/g"},
		{g.At("http"), "Gateway ns/g", "HTTPRoute ns/r"},
		{r, "listener http of Gateway ns/g", "rule first of HTTPRoute ns/r, rule rule-2 of HTTPRoute ns/r"},
		{r.At("first"), "HTTPRoute ns/r", "Service ns/s, Service ns/t"},
		{r.At("rule-2"), "HTTPRoute ns/r", ""},
		{s, "rule first of HTTPRoute ns/r", "port http of Service ns/s"},
		{s.At("http"), "Service ns/s", ""},
		{topology.HTTPRoute("ns", "lost"), "Gateway ns/nobody", "rule rule-1 of HTTPRoute ns/lost"},
	} {
		if got := names(w.Parents(c.of)); got != c.parents {
			t.Errorf("above %s is %q, want %q", c.of, got, c.parents)
		}
		if got := names(w.Children(c.of)); got != c.children {
			t.Errorf("below %s is %q, want %q", c.of, got, c.children)
		}
	}
	missing := map[string]bool{}
	for _, n := range w.Draw().Nodes {
		if n.Missing {
			missing[n.String()] = true
		}
	}
	if got, want := fmt.Sprint(missing), "map[Gateway ns/nobody:true HTTPRoute ns/gone:true Service ns/t:true]"; got != want {
		t.Errorf("missing: %s, want %s", got, want)
	}
	paths := w.Paths(s.At("http"))
	if len(paths) != 1 || names(paths[0].Nodes()) != "GatewayClass any, Gateway ns/g, listener http of Gateway ns/g, HTTPRoute ns/r, rule first of HTTPRoute ns/r" {
		t.Errorf("paths through the port: %v", paths)
	}
}

// TestDrawing holds the three forms of a drawing.
func TestDrawing(t *testing.T) {
	w := newWorld(t, false, class, gateway("g", ""), gateway("other", ""), route("r", "g", ", rules: [{}]"), color("p", "HTTPRoute", "r", "colors: {}"))
	d := w.Draw(topology.HTTPRoute("ns", "r"))
	const dot = `digraph topology {
  rankdir=LR
  node [shape=box]
  "colorpolicy.example.com:ns/p" [label="ColorPolicy\nns/p", shape=note]
  "gateway.gateway.networking.k8s.io:ns/g" [label="Gateway\nns/g"]
  "gateway.gateway.networking.k8s.io:ns/g#http" [label="Gateway\nns/g#http"]
  "gatewayclass.gateway.networking.k8s.io:any" [label="GatewayClass\nany"]
  "httproute.gateway.networking.k8s.io:ns/r" [label="HTTPRoute\nns/r"]
  "httproute.gateway.networking.k8s.io:ns/r#rule-1" [label="HTTPRoute\nns/r#rule-1"]
  "colorpolicy.example.com:ns/p" -> "httproute.gateway.networking.k8s.io:ns/r"
  "gateway.gateway.networking.k8s.io:ns/g" -> "gateway.gateway.networking.k8s.io:ns/g#http"
  "gateway.gateway.networking.k8s.io:ns/g#http" -> "httproute.gateway.networking.k8s.io:ns/r"
  "gatewayclass.gateway.networking.k8s.io:any" -> "gateway.gateway.networking.k8s.io:ns/g"
  "httproute.gateway.networking.k8s.io:ns/r" -> "httproute.gateway.networking.k8s.io:ns/r#rule-1"
}
`
	if got := d.DOT(); got != dot {
		t.Errorf("DOT:\n%s", got)
	}
	const mermaid = `flowchart LR
  n0(["ColorPolicy<br>ns/p"])
  n1["Gateway<br>ns/g"]
  n2["Gateway<br>ns/g#http"]
  n3["GatewayClass<br>any"]
  n4["HTTPRoute<br>ns/r"]
  n5["HTTPRoute<br>ns/r#rule-1"]
  n0 --> n4
  n1 --> n2
  n2 --> n4
  n3 --> n1
  n4 --> n5
`
	if got := d.Mermaid(); got != mermaid {
		t.Errorf("Mermaid:\n%s", got)
	}
	if all := w.Draw(); len(all.Nodes) != len(d.Nodes)+2 {
		t.Errorf("%d nodes in all, %d about the route", len(all.Nodes), len(d.Nodes))
	}
}

// TestDeclaredObjects holds that objects of any kind are nodes, which policies may target.
func TestDeclaredObjects(t *testing.T) {
	g := topology.New(topology.Options{})
	topology.AddObjects(g, topology.ObjectKind[*unstructured.Unstructured]{
		Group: "example.com", Kind: "Certificate",
		Parents: func(o *unstructured.Unstructured) []topology.Node {
			return []topology.Node{topology.Gateway("ns", "g").At("http")}
		},
	})
	w := &world{Graph: g, colors: topology.AddPolicies(g, colors(false))}
	certificate := &unstructured.Unstructured{}
	certificate.SetAPIVersion("example.com/v1")
	certificate.SetKind("Certificate")
	certificate.SetNamespace("ns")
	certificate.SetName("c")
	p := &ColorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	p.Spec.Colors = map[string]string{"a": "1"}
	p.Spec.TargetRefs = append(p.Spec.TargetRefs, targetRef("example.com", "Certificate", "c"))
	w.apply(t, class, gateway("g", ""))
	w.update(t, []topology.Object{certificate, p})

	c := topology.Node{Group: "example.com", Kind: "Certificate", Namespace: "ns", Name: "c"}
	if got := names(w.Children(topology.Gateway("ns", "g").At("http"))); got != c.String() {
		t.Errorf("below the listener: %s", got)
	}
	if got := inForce(w.colors.At(c)); got != "a=1(p)" {
		t.Errorf("in force: %s", got)
	}
	w.update(t, nil, c)
	if w.Exists(c) || len(w.Children(topology.Gateway("ns", "g").At("http"))) != 0 {
		t.Error("a deleted object is a node")
	}
}

// TestUndeclared holds that objects of kinds that nobody has declared are told.
func TestUndeclared(t *testing.T) {
	g := topology.New(topology.Options{})
	var err error
	g.Update(func(tx *topology.Tx) {
		err = tx.Set(&ColorPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}})
	})
	if err == nil || !strings.Contains(err.Error(), "nobody has declared the kind of *topology_test.ColorPolicy") {
		t.Error(err)
	}
}
