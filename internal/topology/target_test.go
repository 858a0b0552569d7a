package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// color is a policy of a kind that only these tests have.
type color struct{ policy.Node[hue] }

// hue is what a color asks for.
type hue string

func (h hue) Equal(o hue) bool { return h == o }

func (c *color) Equal(o *color) bool { return c.Node.Equal(&o.Node) }

var colors = policy.Kind[*color, hue]{
	Kind:       object.KindOf("example.com", "ColorPolicy"),
	Node:       func(c *color) *policy.Node[hue] { return &c.Node },
	Accepted:   condition.PolicyAccepted(),
	Conflicted: condition.BackendTrafficPolicyConflicted,
}

// colored is a graph with color policies.
type colored struct {
	*world
	in        *flow.Input[object.Name, *color]
	ancestors flow.Table[object.Name, []Ancestor]
}

func newColored(o Options) *colored {
	w := newWorld(o)
	in := flow.NewInput[object.Name, *color](w.engine, "colors")
	attached := policy.Attach("color", colors, in)
	return &colored{w, in, Ancestors(w.graph, "color-ancestors", in, attached)}
}

// told says which Gateways a policy concerns, and what is wrong with it there.
func (w *colored) told(name string) string {
	var out []string
	w.engine.View(func(c *flow.Ctx) {
		list, _ := flow.Get(c, w.ancestors, object.Name{Namespace: "default", Name: name})
		for _, a := range list {
			text := a.Gateway.Name
			if a.Accepted.Status != metav1.ConditionTrue {
				text += ": " + a.Accepted.Reason + ": " + a.Accepted.Message
			}
			out = append(out, text)
		}
	})
	return strings.Join(out, ", ")
}

func targetOf(of object.Kind, name, section string) policy.Target {
	key := object.Key{Kind: of, Name: object.Name{Namespace: "default", Name: name}}
	if of == kind.GatewayClass {
		key.Namespace = ""
	}
	return policy.Target{Key: key, Section: section}
}

const painted = `
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: gatehouse.dev/controller}
---
kind: GatewayClass
metadata: {name: theirs}
spec: {controllerName: example.com/other}
---
kind: Gateway
metadata: {namespace: default, name: one}
spec:
  gatewayClassName: ours
  allowedListeners: {namespaces: {from: Same}}
  listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 81, protocol: HTTP}]
---
kind: Gateway
metadata: {namespace: default, name: two}
spec: {gatewayClassName: ours, listeners: [{name: a, port: 82, protocol: HTTP}]}
---
kind: Gateway
metadata: {namespace: default, name: foreign}
spec: {gatewayClassName: theirs, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
kind: ListenerSet
metadata: {namespace: default, name: set}
spec: {parentRef: {name: one}, listeners: [{name: c, port: 83, protocol: HTTP}]}
---
kind: Service
metadata: {namespace: default, name: s}
spec: {ports: [{name: http, port: 80}]}
---
kind: HTTPRoute
metadata: {namespace: default, name: r}
spec:
  parentRefs: [{name: one}, {name: two}, {name: two, sectionName: nonesuch}]
  rules: [{name: first, backendRefs: [{name: s, port: 80}]}, {backendRefs: [{name: s, port: 80}]}]
---
kind: TCPRoute
metadata: {namespace: default, name: r}
spec: {parentRefs: [{name: one}], rules: [{backendRefs: [{name: s, port: 80}]}]}
---
kind: BackendTLSPolicy
metadata: {namespace: default, name: governs}
spec: {targetRefs: [{group: "", kind: Service, name: s}], validation: {hostname: s.test, wellKnownCACertificates: System}}`

// A policy of any kind concerns the Gateways that its target is a part of or gets
// requests from, and is told where there is no such target.
func TestTargets(t *testing.T) {
	o := settings{}.options()
	o.Experimental = true
	for i, c := range []struct {
		targets []policy.Target
		want    string
	}{
		{[]policy.Target{targetOf(kind.GatewayClass, "ours", "")}, "one, two"},
		{[]policy.Target{targetOf(kind.GatewayClass, "theirs", "")}, ""},
		{[]policy.Target{targetOf(kind.Gateway, "one", "")}, "one"},
		{[]policy.Target{targetOf(kind.Gateway, "foreign", "")}, ""},
		{[]policy.Target{targetOf(kind.Gateway, "none", "")}, ""},
		{[]policy.Target{targetOf(kind.Gateway, "one", "b")}, "one"},
		{
			[]policy.Target{targetOf(kind.Gateway, "one", "x")},
			`one: TargetNotFound: Gateway default/one has no listener named "x"; it has "a", "b"; correct sectionName`,
		},
		{[]policy.Target{targetOf(kind.ListenerSet, "set", "c")}, "one"},
		{[]policy.Target{targetOf(kind.HTTPRoute, "r", "")}, "one, two"},
		{[]policy.Target{targetOf(kind.HTTPRoute, "r", "first")}, "one, two"},
		{
			[]policy.Target{targetOf(kind.HTTPRoute, "r", "second"), targetOf(kind.Gateway, "two", "")},
			`one: TargetNotFound: HTTPRoute default/r has no rule named "second"; it has "first"; correct sectionName, ` +
				`two: TargetNotFound: HTTPRoute default/r has no rule named "second"; it has "first"; correct sectionName`,
		},
		{[]policy.Target{targetOf(kind.TCPRoute, "r", "")}, "one"}, // no listener accepts it, and the status says so
		{[]policy.Target{targetOf(kind.Service, "s", "http")}, "one, two"},
		{[]policy.Target{targetOf(kind.Secret, "s", "")}, ""}, // nothing that could be targeted
	} {
		w := newColored(o)
		w.set(t, decode(t, painted)...)
		name := fmt.Sprintf("p%d", i)
		p := &color{policy.Node[hue]{Name: object.Name{Namespace: "default", Name: name}, Reach: policy.Reach{Targets: c.targets}, Asks: "red"}}
		w.engine.Update(func(tx *flow.Tx) { w.in.Set(tx, p.Name, p) })
		if got := w.told(name); got != c.want {
			t.Errorf("%v: %q, want %q", c.targets, got, c.want)
		}
	}
}

// A policy that waits for its target is checked once it comes, and again when it goes.
func TestTargetComes(t *testing.T) {
	w := newColored(settings{ImplicitClass: "gatehouse"}.options())
	for _, name := range []string{"late", "other"} {
		p := &color{policy.Node[hue]{
			Name: object.Name{Namespace: "default", Name: name}, Reach: policy.Reach{Targets: []policy.Target{targetOf(kind.Gateway, "g", "http")}},
		}}
		w.engine.Update(func(tx *flow.Tx) { w.in.Set(tx, p.Name, p) })
	}
	check := func(when, late, other string) {
		t.Helper()
		if got := w.told("late"); got != late {
			t.Errorf("%s: %q, want %q", when, got, late)
		}
		if got := w.told("other"); got != other {
			t.Errorf("%s: the other: %q, want %q", when, got, other)
		}
	}
	check("without a target", "", "")
	all := decode(t, fleet)
	w.set(t, all...)
	conflicted := "g: Conflicted: XBackendTrafficPolicy default/late targets listener http of Gateway default/g too, and takes precedence; remove one of the two"
	check("with it", "g", conflicted)
	i := slices.IndexFunc(all, func(o source.Object) bool { return o.GetName() == "g" })
	k, _ := w.world.in.KeyOf(all[i])
	w.apply(t, source.Batch{Deleted: []object.Key{k}})
	check("when it is gone", "", "")
}
