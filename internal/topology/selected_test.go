package topology

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/inherited"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
)

// selecting are an AuthPolicy and a RateLimitPolicy for what has a label.
const selecting = `
kind: AuthPolicy
metadata: {namespace: default, name: guard}
spec:
  targetSelectors: [{kind: HTTPRoute, matchLabels: {guarded: "yes"}}]
  authorization: {office: {addresses: {allow: [192.0.2.0/24]}}}
---
kind: RateLimitPolicy
metadata: {namespace: default, name: limit}
spec:
  targetSelectors: [{kind: HTTPRoute, matchLabels: {guarded: "yes"}}]
  limits: {all: {rates: [{limit: 1, window: 1m}]}}`

// routeWith is a route with labels, "a=b,c=d".
func routeWith(n int, labels string) *gwv1.HTTPRoute {
	r := routeObject(n)
	r.CreationTimestamp = metav1.NewTime(time.Unix(int64(n), 0))
	for label := range strings.SplitSeq(labels, ",") {
		if name, value, ok := strings.Cut(label, "="); ok {
			metav1.SetMetaDataLabel(&r.ObjectMeta, name, value)
		}
	}
	return r
}

// guarding says what is in force on a route by AuthPolicies, "policy rule", and how many limits.
func (w *world) guarding(route *gwv1.HTTPRoute) (out string) {
	w.engine.View(func(c *flow.Ctx) {
		at := AttachmentKey{
			Route:    object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: route.Namespace, Name: route.Name}},
			Listener: ListenerOf(object.Name{Namespace: "default", Name: "g"}, object.Name{}, "http"),
		}
		if e := w.graph.Auth.On(c, at, ""); e != nil {
			for _, r := range e.Rules {
				if r.Value.Condition != nil && r.Value.Condition.Never {
					out += "closed "
					continue
				}
				out += e.Policies[r.From].Policy.Name + " " + r.Name + " "
			}
		}
		if l := limits.InForce(w.graph.RateLimits.On(c, at, "")); l != nil {
			out += fmt.Sprintf("%d limits", len(l.Counted))
		}
	})
	return strings.TrimSpace(out)
}

// Objects are guarded as long as they have the labels, by whichever of several ways once.
func TestSelected(t *testing.T) {
	w := populate(t, 3)
	other := routeWith(9, "guarded=yes")
	other.Namespace = "other"
	w.set(t, other)
	w.set(t, decode(t, selecting)...)
	const guarded = "guard authorization/office 1 limits"
	check := func(when string, want ...string) {
		t.Helper()
		for i, want := range want {
			if got := w.guarding(routeObject(i)); got != want {
				t.Errorf("%s: route %d has %q, want %q", when, i, got, want)
			}
		}
		if got := w.guarding(other); got != "" {
			t.Errorf("%s: a route of another namespace has %q", when, got)
		}
	}
	check("before there is a label", "", "", "")
	w.set(t, routeWith(0, "guarded=yes"), routeWith(1, "guarded=no"), routeWith(2, "guarded=yes,team=a"))
	check("with labels", guarded, "", guarded)
	w.set(t, routeWith(0, "guard=yes"), routeWith(1, "guarded=yes"))
	check("with others", "", guarded, guarded)
	both := decode(t, strings.ReplaceAll(selecting, "spec:\n", "spec:\n  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: route-00001}]\n"))
	w.set(t, both...)
	check("with a reference too", "", guarded, guarded)
	w.set(t, routeWith(1, ""))
	check("with a reference alone", "", guarded, guarded)
	w.set(t, decode(t, strings.ReplaceAll(selecting, "matchLabels: {", "matchLabels: {team: a, "))...)
	check("with two labels", "", "", guarded)
	w.set(t, decode(t, strings.ReplaceAll(selecting, `matchLabels: {guarded: "yes"}`, "matchLabels: {}"))...)
	check("with none", "", "", "")
	w.engine.View(func(c *flow.Ctx) {
		p, _ := flow.Get(c, w.graph.AuthPolicies, object.Name{Namespace: "default", Name: "guard"})
		if p.Refused == nil || !strings.Contains(p.Refused.Message, "spec.targetSelectors[0].matchLabels has no labels") {
			t.Errorf("without labels the policy is %v", p.Refused)
		}
	})
}

// Of objects that are too many the youngest ones are closed, and are not limited.
func TestTooManySelected(t *testing.T) {
	w := populate(t, 0)
	w.set(t, decode(t, selecting)...)
	for i := range inherited.MaxSelected {
		w.set(t, routeWith(i+1, "guarded=yes"))
	}
	const guarded = "guard authorization/office 1 limits"
	oldest, youngest := routeWith(0, "guarded=yes"), routeWith(inherited.MaxSelected+1, "guarded=yes")
	refused := func() (said string) {
		w.engine.View(func(c *flow.Ctx) {
			p, _ := flow.Get(c, w.graph.AuthPolicies, object.Name{Namespace: "default", Name: "guard"})
			l, _ := flow.Get(c, w.graph.RateLimitPolicies, object.Name{Namespace: "default", Name: "limit"})
			if (p.Refused == nil) != (l.Refused == nil) {
				t.Errorf("one of the policies is refused: %v, %v", p.Refused, l.Refused)
			}
			if p.Refused != nil {
				said = p.Refused.Message
			}
		})
		return said
	}
	if got := refused(); got != "" {
		t.Errorf("as many as may be are refused: %s", got)
	}
	w.set(t, youngest)
	if got := refused(); !strings.Contains(got, fmt.Sprintf("spec.targetSelectors select %d objects, and a policy may select %d", inherited.MaxSelected+1, inherited.MaxSelected)) {
		t.Errorf("one more is refused: %q", got)
	}
	if got := w.guarding(youngest); got != "closed guard authorization/office" {
		t.Errorf("the youngest has %q", got)
	}
	if got := w.guarding(routeWith(inherited.MaxSelected, "")); got != guarded {
		t.Errorf("the last but one has %q", got)
	}
	w.set(t, oldest)
	if got := w.guarding(oldest); got != guarded {
		t.Errorf("the oldest has %q", got)
	}
	if got := w.guarding(routeWith(inherited.MaxSelected, "")); !strings.HasPrefix(got, "closed") {
		t.Errorf("the second youngest has %q", got)
	}
	w.set(t, routeWith(0, ""), routeWith(inherited.MaxSelected+1, ""))
	if got := refused() + w.guarding(routeWith(inherited.MaxSelected, "")) + w.guarding(youngest); got != guarded {
		t.Errorf("afterwards: %q", got)
	}
}

// TestSelectedTouchWhatTheyConcern protects the cost of labels: those of a route concern this route
// and the policies that select it, and nothing else of it concerns them.
func TestSelectedTouchWhatTheyConcern(t *testing.T) {
	const n = 100
	w := populate(t, n)
	for i := range n - 1 {
		w.set(t, routeWith(i, "guarded=yes,app=x"))
	}
	w.set(t, decode(t, selecting)...)
	edited := routeWith(7, "guarded=yes,app=x")
	edited.Spec.Rules[0].BackendRefs[0].Name = "service-00008"
	tables := []string{"topology-auth-policies", "topology-auth-policy-attachments", "auth-of-routes", "topology-auth-policy-ancestors"}
	for _, step := range []struct {
		name   string
		object *gwv1.HTTPRoute
		want   [4]uint64 // runs of tables
	}{
		{"a route that is selected from now on", routeWith(n-1, "guarded=yes"), [4]uint64{1, 1, 1, 1}},
		{"one with another label", routeWith(n-1, "guarded=yes,app=y"), [4]uint64{1, 0, 0, 0}},
		{"one that no longer is", routeWith(n-1, "app=y"), [4]uint64{1, 1, 1, 1}},
		{"one that never was", routeWith(n-1, "app=z"), [4]uint64{}},
		{"an edit", edited, [4]uint64{}},
	} {
		w.costs(t, step.name, step.object, tables, step.want[:])
	}
}

// BenchmarkLabel measures one label that comes and goes, where a policy selects many others.
func BenchmarkLabel(b *testing.B) {
	for _, n := range []int{10, inherited.MaxSelected - 1} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := populate(b, 5000)
			for i := range n {
				w.set(b, routeWith(i, "guarded=yes"))
			}
			w.set(b, decode(b, selecting)...)
			edits := [2]*gwv1.HTTPRoute{routeWith(4999, "guarded=yes"), routeWith(4999, "")}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.set(b, edits[i%2])
			}
		})
	}
}
