package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// color is a policy of a kind of these tests' own.
type color struct {
	policy.Node[hue]
	label string // nothing that it says
}

func (c *color) Equal(o *color) bool { return c.label == o.label && c.Node.Equal(&o.Node) }

// hue is what a color asks for.
type hue string

func (h hue) Equal(o hue) bool { return h == o }

var colors = policy.Kind[*color, hue]{
	Kind:     object.KindOf("example.com", "ColorPolicy"),
	Node:     func(c *color) *policy.Node[hue] { return &c.Node },
	Accepted: metav1.Condition{Type: "Accepted", Status: metav1.ConditionTrue},
	Conflicted: func(target, winner string) metav1.Condition {
		return metav1.Condition{Type: "Accepted", Status: metav1.ConditionFalse, Reason: "Conflicted", Message: winner + " on " + target}
	},
}

func web(section string) policy.Target { return on(kind.Service, "web", section) }

func on(of object.Kind, name, section string) policy.Target {
	return policy.Target{Key: object.Key{Kind: of, Name: object.Name{Namespace: "ns", Name: name}}, Section: section}
}

func paint(name string, age int, asks hue, targets ...policy.Target) *color {
	return &color{Node: policy.Node[hue]{
		Name: object.Name{Namespace: "ns", Name: name}, Created: time.Unix(int64(-age), 0), Reach: policy.Reach{Targets: targets}, Asks: asks,
	}}
}

// world is policies, and who reads them.
type world struct {
	engine   *flow.Engine
	in       *flow.Input[object.Name, *color]
	attached *policy.Attachments[*color, hue]
	presence policy.Presence
	readers  *flow.Input[policy.Target, struct{}]
	seen     flow.Table[policy.Target, string]
	runs     map[policy.Target]int
}

func newWorld(k policy.Kind[*color, hue]) *world {
	e := flow.New()
	w := &world{engine: e, in: flow.NewInput[object.Name, *color](e, "colors"), runs: map[policy.Target]int{}}
	w.readers = flow.NewInput[policy.Target, struct{}](e, "readers")
	w.attached = policy.Attach("color", k, w.in)
	w.presence = policy.NewPresence("colored", w.attached)
	w.seen = flow.Map("seen", w.readers, func(c *flow.Ctx, t policy.Target, _ struct{}, emit func(policy.Target, string)) {
		w.runs[t]++
		if !w.presence.Possible(c, t.Key) {
			return
		}
		if said, ok := w.attached.On(c, t.Key).First(t.Section); ok {
			emit(t, strings.TrimSpace(said.Policy.Name+" "+string(said.Asks)+" "+said.Refused))
		}
	})
	return w
}

func (w *world) set(policies ...*color) {
	w.engine.Update(func(tx *flow.Tx) {
		for _, p := range policies {
			w.in.Set(tx, p.Name, p)
		}
	})
}

func (w *world) read(t policy.Target) string {
	w.engine.Update(func(tx *flow.Tx) { w.readers.Set(tx, t, struct{}{}) })
	var out string
	w.engine.View(func(c *flow.Ctx) { out, _ = flow.Get(c, w.seen, t) })
	return out
}

func (w *world) judge(p *color, t policy.Target) string {
	var out string
	w.engine.View(func(c *flow.Ctx) {
		if problem := w.attached.Judge(c, p, t); problem != nil {
			out = strings.TrimSpace(problem.Reason + " " + problem.Message)
		}
	})
	return out
}

// The precedence of policies on one target is GEP-713's, and who loses is told by whom.
func TestPrecedence(t *testing.T) {
	young, old, twin := paint("young", 1, "red", web("")), paint("old", 2, "green", web(""), web("")), paint("twin", 2, "blue", web(""))
	port := paint("port", 0, "grey", web("http"), web(""))
	w := newWorld(colors)
	w.set(young)
	if got := w.read(web("")); got != "young red" {
		t.Errorf("the only policy: %q", got)
	}
	w.set(old, twin, port)
	for target, want := range map[policy.Target]string{
		web(""): "old green", web("http"): "port grey", web("other"): "old green", on(kind.Service, "none", ""): "",
		on(kind.Gateway, "web", ""): "",
	} {
		if got := w.read(target); got != want {
			t.Errorf("%s has %q, want %q", target, got, want)
		}
	}
	for p, want := range map[*color]string{
		old: "", young: "Conflicted ns/old on Service ns/web", twin: "Conflicted ns/old on Service ns/web",
	} {
		if got := w.judge(p, web("")); got != want {
			t.Errorf("%s: %q, want %q", p.Name, got, want)
		}
	}
	if got := w.judge(port, web("http")); got != "" {
		t.Errorf("the port's own policy: %q", got)
	}

	refused := paint("refused", 9, "", web(""))
	refused.Refused = &metav1.Condition{Reason: "Invalid", Message: "is broken"}
	w.set(refused)
	if got := w.read(web("")); got != "refused  is broken" {
		t.Errorf("a policy that can't be used is passed over: %q", got)
	}
	if got := w.judge(refused, web("")); got != "Invalid is broken" {
		t.Errorf("a policy that can't be used is told %q", got)
	}

	joined := colors
	joined.Conflict = policy.Joined
	w = newWorld(joined)
	w.set(young, old)
	if got := w.judge(young, web("")); got != "" {
		t.Errorf("policies that are joined conflict: %q", got)
	}
	w.engine.View(func(c *flow.Ctx) {
		var names []string
		for _, said := range w.attached.On(c, web("").Key).At("") {
			names = append(names, said.Policy.Name)
		}
		if !slices.Equal(names, []string{"old", "young"}) {
			t.Errorf("joined policies are in the order %q", names)
		}
	})
}

// Readers are woken by what is said to them, and by nothing else about policies.
func TestReadersAreLeftAlone(t *testing.T) {
	w := newWorld(colors)
	w.read(web(""))
	p := paint("p", 1, "red", web(""))
	for _, step := range []struct {
		what string
		do   func(*color)
		runs int // of the reader, so far
	}{
		{"the first policy", func(*color) {}, 2},
		{"its label", func(c *color) { c.label = "x" }, 2},
		{"another target", func(c *color) { c.Targets = append(slices.Clone(c.Targets), on(kind.Service, "other", "")) }, 2},
		{"what it asks for", func(c *color) { c.Asks = "blue" }, 3},
		{"its end", func(c *color) { c.Targets = nil }, 4},
	} {
		next := *p
		step.do(&next)
		p = &next
		w.set(p)
		if got := w.runs[web("")]; got != step.runs {
			t.Errorf("%s: the reader has run %d times, want %d", step.what, got, step.runs)
		}
	}
}

// What is attached depends on the policies that there are, and not on how they came.
func TestAttachmentsHaveNoHistory(t *testing.T) {
	targets := []policy.Target{web(""), web("a"), web("b"), on(kind.Gateway, "web", ""), on(kind.HTTPRoute, "web", "a")}
	draw := rapid.Custom(func(t *rapid.T) *color {
		name := rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "name")
		p := paint(name, rapid.IntRange(0, 1).Draw(t, "age"), rapid.SampledFrom([]hue{"red", "blue"}).Draw(t, "asks"),
			rapid.SliceOfN(rapid.SampledFrom(targets), 0, 3).Draw(t, "targets")...)
		p.Strategy = policy.Strategy(rapid.IntRange(0, 3).Draw(t, "strategy"))
		return p
	})
	printed := func(w *world, policies map[string]*color) string {
		var out strings.Builder
		for _, target := range targets {
			fmt.Fprintln(&out, target, w.read(target))
			for _, name := range []string{"p", "q", "r"} {
				if p := policies[name]; p != nil {
					fmt.Fprintln(&out, name, w.judge(p, target))
				}
			}
		}
		return out.String()
	}
	rapid.Check(t, func(t *rapid.T) {
		w, last := newWorld(colors), map[string]*color{}
		for _, p := range rapid.SliceOfN(draw, 1, 10).Draw(t, "policies") {
			w.set(p)
			last[p.Name.Name] = p
		}
		fresh := newWorld(colors)
		for _, name := range []string{"r", "q", "p"} {
			if p := last[name]; p != nil {
				fresh.set(p)
			}
		}
		if a, b := printed(w, last), printed(fresh, last); a != b {
			t.Fatalf("after a history:\n%s\nanew:\n%s", a, b)
		}
	})
}

// A target's name says which section of what it is.
func TestTargetText(t *testing.T) {
	for want, target := range map[string]policy.Target{
		"Service ns/web": web(""), "port http of Service ns/web": web("http"),
		"listener a of Gateway ns/g": on(kind.Gateway, "g", "a"), "listener a of ListenerSet ns/s": on(kind.ListenerSet, "s", "a"),
		"rule r of GRPCRoute ns/x": on(kind.GRPCRoute, "x", "r"),
	} {
		if got := target.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if a, b := web("a"), web("b"); a.Compare(b) >= 0 || b.Compare(a) <= 0 || a.Compare(a) != 0 {
		t.Error("sections have no order")
	}
}
