package topology_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// gep is the topology of GEP-713's examples.
func gep() string {
	return strings.Join([]string{
		class, gateway("g1", ""), gateway("g2", ""), service("b1"), service("b2"),
		route("r1", "g1", to("b1")), route("r2", "g1", to("b1")), route("r3", "g2", to("b1")), route("r4", "g2", to("b2")),
	}, "\n---\n")
}

// TestExamples holds the examples of GEP-713, with what is said of the policies.
func TestExamples(t *testing.T) {
	for _, c := range []struct {
		what     string
		policies []string
		want     []string
		told     map[string]string
		affected map[topology.Node]string
	}{
		{
			what: "atomic",
			policies: []string{
				color("p1", "Gateway", "g1", "colors: {color: red}"), color("p2", "HTTPRoute", "r1", "colors: {color: blue}"),
				color("p3", "Gateway", "g2", "overrides: true, colors: {color: yellow}"), color("p4", "HTTPRoute", "r4", "colors: {color: green}"),
			},
			want: []string{"g1 r1: color=blue(p2)", "g1 r2: color=red(p1)", "g2 r3: color=yellow(p3)", "g2 r4: color=yellow(p3)"},
			told: map[string]string{
				"p1": "g1 Accepted: In force as a whole on 1 of 2 paths; elsewhere overridden by ns/p2",
				"p2": "g1 Accepted", "p3": "g2 Accepted", "p4": "g2 Accepted: Overridden by ns/p3",
			},
			affected: map[topology.Node]string{
				topology.Service("ns", "b1"): "ColorPolicy ns/p1, ColorPolicy ns/p2, ColorPolicy ns/p3", topology.Service("ns", "b2"): "ColorPolicy ns/p3",
				topology.Gateway("ns", "g1"): "ColorPolicy ns/p1, ColorPolicy ns/p2", topology.Service("ns", "b1").At("http"): "ColorPolicy ns/p1, ColorPolicy ns/p2, ColorPolicy ns/p3",
			},
		},
		{
			what: "patch",
			policies: []string{
				color("p1", "Gateway", "g1", "merge: true, colors: {dark: brown, light: red}"), color("p2", "HTTPRoute", "r1", "colors: {light: blue}"),
				color("p3", "Gateway", "g2", "overrides: true, merge: true, colors: {light: yellow}"),
				color("p4", "HTTPRoute", "r4", "colors: {dark: olive, light: green}"),
			},
			want: []string{
				"g1 r1: dark=brown(p1) light=blue(p2)", "g1 r2: dark=brown(p1) light=red(p1)",
				"g2 r3: light=yellow(p3)", "g2 r4: dark=olive(p4) light=yellow(p3)",
			},
			told: map[string]string{
				"p1": "g1 Accepted: In force as a whole on 1 of 2 paths; elsewhere overridden by ns/p2",
				"p2": "g1 Accepted", "p3": "g2 Accepted", "p4": "g2 Accepted: In force as a whole on 0 of 1 paths; elsewhere overridden by ns/p3",
			},
			affected: map[topology.Node]string{topology.Service("ns", "b2"): "ColorPolicy ns/p3, ColorPolicy ns/p4"},
		},
		{
			// The policy of the first Gateway is atomic here, as in the text of the GEP.
			what: "patch over atomic defaults",
			policies: []string{
				color("p1", "Gateway", "g1", "colors: {dark: brown, light: red}"), color("p2", "HTTPRoute", "r1", "colors: {light: blue}"),
			},
			want: []string{"g1 r1: light=blue(p2)", "g1 r2: dark=brown(p1) light=red(p1)", "g2 r3: ", "g2 r4: "},
		},
		{
			what: "a class, a listener, a rule",
			policies: []string{
				color("ru", "HTTPRoute", "r5#second", "colors: {d: 4}"), color("ls", "Gateway", "g1#http", "merge: true, colors: {b: 2}"),
				color("gw", "Gateway", "g1", "merge: true, colors: {a: 1, b: 1}"), color("rt", "HTTPRoute", "r5", "merge: true, colors: {c: 3}"),
				route("r5", "g1", ", rules: [{name: first}, {name: second}, {}]"),
			},
			want: []string{
				"g1 r1: a=1(gw) b=2(ls)", "g1 r2: a=1(gw) b=2(ls)", "g1 r5: a=1(gw) b=2(ls) c=3(rt)", "g1 r5 second: a=1(gw) b=2(ls) c=3(rt) d=4(ru)",
				"g1 r5 rule-3: a=1(gw) b=2(ls) c=3(rt)", "g2 r3: ", "g2 r4: ",
			},
		},
		{
			what: "what can't be used, or has no target",
			policies: []string{
				color("bad", "HTTPRoute", "r1", "colors: {a: invisible}"), color("gw", "Gateway", "g1", "colors: {a: 1}"),
				color("none", "HTTPRoute", "nonesuch", "colors: {a: 2}"), color("rule", "HTTPRoute", "r2#nonesuch", "colors: {a: 2}"),
			},
			want: []string{"g1 r1: a=1(gw)", "g1 r2: a=1(gw)", "g2 r3: ", "g2 r4: "},
			told: map[string]string{
				"bad": "g1 Invalid: spec.colors has invisible, which is no color", "none": "nonesuch TargetNotFound: HTTPRoute ns/nonesuch does not exist; create it or correct targetRefs",
				"rule": `g1 TargetNotFound: HTTPRoute ns/r2 has no rule named "nonesuch"; its rules have no names; correct sectionName`,
			},
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := newWorld(t, false, append([]string{gep()}, c.policies...)...)
			if got, want := w.effective(), strings.Join(c.want, "\n"); got != want {
				t.Errorf("in force:\n%s\nwant\n%s", got, want)
			}
			for name, want := range c.told {
				if got := w.told(name); got != want {
					t.Errorf("%s is told %q, want %q", name, got, want)
				}
			}
			for node, want := range c.affected {
				if got := names(w.colors.Affecting(node)); got != want {
					t.Errorf("%s is affected by %q, want %q", node, got, want)
				}
			}
		})
	}
}

// TestDirect holds GEP-713's example of policies that are for their targets alone.
func TestDirect(t *testing.T) {
	w := newWorld(t, true, gep(), color("p1", "Service", "b1", "colors: {color: red}"), color("p2", "Service", "b1", "colors: {color: blue}"))
	if got := inForce(w.colors.At(topology.Service("ns", "b1"))); got != "color=red(p1)" {
		t.Errorf("in force: %s", got)
	}
	if got := inForce(w.colors.At(topology.Service("ns", "b1").At("http"))); got != "color=red(p1)" {
		t.Errorf("in force for the port: %s", got)
	}
	got, want := w.colors.Ancestors("ns", "p2"), "ColorPolicy ns/p1 targets Service ns/b1 too, and takes precedence; remove one of the two"
	if len(got) != 2 || got[0].Accepted.Reason != "Conflicted" || got[0].Accepted.Message != want {
		t.Errorf("the younger one is told %+v", got)
	}
	if got := w.colors.Ancestors("ns", "p1"); len(got) != 2 || got[0].Accepted.Reason != "Accepted" {
		t.Errorf("the older one is told %+v", got)
	}
	if got := names(w.colors.Affecting(topology.Service("ns", "b1"))); got != "ColorPolicy ns/p1" {
		t.Errorf("the Service is affected by %s", got)
	}
}

// TestAttachmentsNotReferences protects policies from routes that a listener rejects.
func TestAttachmentsNotReferences(t *testing.T) {
	w := newWorld(t, false, class, gateway("g", ", hostname: '*.example.com'"), color("p", "Gateway", "g", "colors: {color: red}"),
		route("in", "g", ", hostnames: [a.example.com], rules: [{}]"), route("out", "g", ", hostnames: [example.org], rules: [{}]"),
		strings.Replace(route("foreign", "g", ", rules: [{}]"), "metadata: {", "metadata: {namespace: other, ", 1))
	if got := w.effective(); got != "g in: color=red(p)" {
		t.Error(got)
	}
	if got := names(w.colors.Affecting(topology.HTTPRoute("ns", "out"))); got != "" {
		t.Errorf("a route that no listener accepts is affected by %s", got)
	}
	if got := w.told("p"); got != "g Accepted" {
		t.Error(got)
	}
}

// TestHostnames holds that the policy of the most specific hostname is in force for a host,
// and that nothing is merged between hostnames; an override above them all has the last
// word.
func TestHostnames(t *testing.T) {
	on := func(name, host string) string { return route(name, "gw", ", hostnames: ["+host+"], rules: [{}]") }
	objects := []string{
		class, gateway("gw", ", hostname: '*.com'"), on("a", "a.toystore.com"), on("b", "b.toystore.com"), on("w", "'*.toystore.com'"), on("rest", "'*.com'"),
		color("A", "HTTPRoute", "a", "colors: {a: 1}"), color("B", "HTTPRoute", "b", "colors: {b: 1}"), color("W", "HTTPRoute", "w", "colors: {w: 1}"),
	}
	hosts := []string{"a.toystore.com", "b.toystore.com", "other.toystore.com", "other.com", "yet-another.net"}
	for strategy, want := range map[string][]string{
		"colors: {g: 1}":                  {"a=1(A)", "b=1(B)", "w=1(W)", "g=1(G)", "nothing"},
		"overrides: true, colors: {g: 1}": {"g=1(G)", "g=1(G)", "g=1(G)", "g=1(G)", "nothing"},
	} {
		w := newWorld(t, false, append(objects, color("G", "Gateway", "gw", strategy))...)
		for i, host := range hosts {
			got := "nothing"
			for _, p := range w.Serving(topology.Gateway("ns", "gw"), host) {
				got = inForce(w.colors.Effective(p))
			}
			if got != want[i] {
				t.Errorf("%s: %s has %s, want %s", strategy, host, got, want[i])
			}
		}
	}
}
