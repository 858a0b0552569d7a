package policy_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// says is a policy on a path whose rules are written "a=red b=blue"; a dash is a policy
// that can't be used, and a name with a bar is of a rule that suffices.
func says(name string, strategy policy.Strategy, target policy.Target, rules string) policy.Placed[hue] {
	p := policy.Placed[hue]{Target: target}
	p.Policy, p.Strategy = object.Name{Namespace: "ns", Name: name}, strategy
	if rules == "-" {
		p.Refused = "is broken"
		return p
	}
	list := []policy.Rule[hue]{}
	for r := range strings.FieldsSeq(rules) {
		name, value, _ := strings.Cut(r, "=")
		list = append(list, policy.Rule[hue]{Name: name, Value: hue(value), Sufficient: strings.HasSuffix(name, "|")})
	}
	p.Asks = policy.NewRules(list)
	return p
}

// printed writes the rules in force with the names of their policies.
func printed(e *policy.Effective[hue]) string {
	if e == nil {
		return "nothing"
	}
	var out []string
	for _, r := range e.Rules {
		out = append(out, fmt.Sprintf("%s=%s(%s)", r.Name, r.Value, e.Policies[r.From].Policy.Name))
	}
	return strings.Join(out, " ")
}

// outcomes writes what became of the policies.
func outcomes(e *policy.Effective[hue]) string {
	var out []string
	for _, o := range e.Policies {
		text := fmt.Sprintf("%s %d/%d", o.Policy.Name, o.InForce, o.Rules)
		for _, by := range o.By {
			text += " " + by.Name
		}
		if o.Overridden() {
			text += " overridden"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

const (
	defaults       = policy.AtomicDefaults
	overrides      = policy.AtomicOverrides
	mergeDefaults  = policy.MergeDefaults
	mergeOverrides = policy.MergeOverrides
)

// TestCombine holds the examples of GEP-713, and what Kuadrant's library answers for the
// two levels Gateway and route.
func TestCombine(t *testing.T) {
	gateway, listener := on(kind.Gateway, "g", ""), on(kind.Gateway, "g", "http")
	route, rule := on(kind.HTTPRoute, "r", ""), on(kind.HTTPRoute, "r", "first")
	for _, c := range []struct {
		what     string
		path     []policy.Placed[hue]
		want     string
		outcomes string
	}{
		{"nothing", nil, "nothing", ""},
		{
			"the example of defaults, first path",
			[]policy.Placed[hue]{says("p1", defaults, gateway, "color=red"), says("p2", defaults, route, "color=blue")},
			"color=blue(p2)", "p1 0/1 p2 overridden, p2 1/1",
		},
		{"the example of defaults, second path", []policy.Placed[hue]{says("p1", defaults, gateway, "color=red")}, "color=red(p1)", "p1 1/1"},
		{
			"the example of overrides",
			[]policy.Placed[hue]{says("p3", overrides, gateway, "color=yellow"), says("p4", defaults, route, "color=green")},
			"color=yellow(p3)", "p3 1/1, p4 0/1 p3 overridden",
		},
		{
			"the example of patches, first path",
			[]policy.Placed[hue]{says("p1", defaults, gateway, "dark=brown light=red"), says("p2", defaults, route, "light=blue")},
			"light=blue(p2)", "p1 0/2 p2 overridden, p2 1/1",
		},
		{
			"the example of patches, fourth path",
			[]policy.Placed[hue]{says("p3", mergeOverrides, gateway, "light=yellow"), says("p4", defaults, route, "dark=olive light=green")},
			"dark=olive(p4) light=yellow(p3)", "p3 1/1, p4 1/2 p3",
		},
		{
			"atomic defaults", []policy.Placed[hue]{says("gw", defaults, gateway, "a=1"), says("rt", defaults, route, "b=2")},
			"b=2(rt)", "gw 0/1 rt overridden, rt 1/1",
		},
		{
			"atomic overrides", []policy.Placed[hue]{says("gw", overrides, gateway, "a=1"), says("rt", defaults, route, "b=2")},
			"a=1(gw)", "gw 1/1, rt 0/1 gw overridden",
		},
		{
			"merged defaults", []policy.Placed[hue]{says("gw", mergeDefaults, gateway, "a=1 c=1"), says("rt", defaults, route, "a=2 b=2")},
			"a=2(rt) b=2(rt) c=1(gw)", "gw 1/2 rt, rt 2/2",
		},
		{
			"merged overrides", []policy.Placed[hue]{says("gw", mergeOverrides, gateway, "a=1 c=1"), says("rt", defaults, route, "a=2 b=2")},
			"a=1(gw) b=2(rt) c=1(gw)", "gw 2/2, rt 1/2 gw",
		},
		{
			"what suffices is not added to an override", []policy.Placed[hue]{
				says("gw", mergeOverrides, gateway, "a|=1"), says("gx", defaults, gateway, "b|=2 c=2"), says("rt", mergeDefaults, route, "c=3 d|=3"), says("ru", defaults, rule, "e|=4"),
			},
			"a|=1(gw) c=3(rt)", "gw 1/1, gx 0/2 gw rt overridden, rt 1/2 gw, ru 0/1 gw overridden",
		},
		{
			"what suffices is not added on the same target either", []policy.Placed[hue]{says("gw", mergeOverrides, gateway, "a|=1"), says("gx", overrides, gateway, "b|=2 c=2")},
			"a|=1(gw) c=2(gx)", "gw 1/1, gx 1/2 gw",
		},
		{
			"what blocks", []policy.Placed[hue]{says("gw", overrides, gateway, "a=1"), says("rt", policy.Blocks, route, "b=2"), says("ru", mergeOverrides, rule, "c=3")},
			"b=2(rt)", "gw 0/1 rt overridden, rt 1/1, ru 0/1 rt overridden",
		},
		{
			"what suffices is added to an override of other rules", []policy.Placed[hue]{says("gw", mergeOverrides, gateway, "a=1"), says("rt", defaults, route, "b|=2")},
			"a=1(gw) b|=2(rt)", "gw 1/1, rt 1/1",
		},
		{
			"what suffices is added to a default", []policy.Placed[hue]{says("gw", mergeDefaults, gateway, "a|=1"), says("rt", defaults, route, "b|=2")},
			"a|=1(gw) b|=2(rt)", "gw 1/1, rt 1/1",
		},
		{
			"one target, defaults: the younger one", []policy.Placed[hue]{says("old", defaults, route, "a=1"), says("young", defaults, route, "b=2")},
			"b=2(young)", "old 0/1 young overridden, young 1/1",
		},
		{
			"one target, overrides: the older one", []policy.Placed[hue]{says("old", overrides, route, "a=1"), says("young", overrides, route, "b=2")},
			"a=1(old)", "old 1/1, young 0/1 old overridden",
		},
		{
			"an override below a default", []policy.Placed[hue]{
				says("gw", defaults, gateway, "a=1"), says("ls", overrides, listener, "a=2"), says("rt", defaults, route, "a=3"),
			},
			"a=2(ls)", "gw 0/1 ls overridden, ls 1/1, rt 0/1 ls overridden",
		},
		{
			"three levels", []policy.Placed[hue]{
				says("gw", mergeOverrides, gateway, "a=1"), says("rt", defaults, route, "a=2 b=2"), says("ru", defaults, rule, "c=3"),
			},
			"a=1(gw) c=3(ru)", "gw 1/1, rt 0/2 ru overridden, ru 1/1",
		},
		{
			"who lost to a loser is told who won", []policy.Placed[hue]{
				says("gw", overrides, gateway, "a=1"), says("rt", defaults, route, "a=2"), says("ru", defaults, rule, "a=3"),
			},
			"a=1(gw)", "gw 1/1, rt 0/1 gw overridden, ru 0/1 gw overridden",
		},
		{
			"none shall be", []policy.Placed[hue]{says("gw", defaults, gateway, "a=1"), says("rt", defaults, route, "")},
			"", "gw 0/1 rt overridden, rt 0/0",
		},
		{
			"that none shall be is overridden", []policy.Placed[hue]{says("gw", overrides, gateway, "a=1"), says("rt", defaults, route, "")},
			"a=1(gw)", "gw 1/1, rt 0/0 gw overridden",
		},
		{
			"that none shall be is overridden rule by rule, too", []policy.Placed[hue]{
				says("gw", mergeOverrides, gateway, "a=1"), says("gx", mergeDefaults, gateway, "b=1"), says("rt", defaults, route, ""),
			},
			"a=1(gw) b=1(gx)", "gw 1/1, gx 1/1, rt 0/0 gw gx overridden",
		},
		{
			"none shall be, and none is", []policy.Placed[hue]{says("gw", mergeOverrides, gateway, ""), says("rt", defaults, route, "")},
			"", "gw 0/0, rt 0/0",
		},
		{
			"what can't be used takes nobody's place", []policy.Placed[hue]{
				says("gw", defaults, gateway, "a=1"), says("rt", defaults, route, "-"), says("up", overrides, rule, "-"),
			},
			"a=1(gw)", "gw 1/1, rt 0/0, up 0/0",
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			e := policy.Combine(c.path)
			if got := printed(e); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if e == nil {
				return
			}
			if got := outcomes(e); got != c.outcomes {
				t.Errorf("%s, want %s", got, c.outcomes)
			}
		})
	}
}

// combined answers for a path what GEP-713 says of it, in another way than Combine does:
// rule by rule, and not policy by policy.
func combined(path []policy.Placed[hue]) (rules []string) {
	// A policy is out if a more established one overrides all, or if it has only defaults
	// for all and somebody challenges them.
	var alive []policy.Placed[hue]
	for i, p := range path {
		usable := func(q policy.Placed[hue]) bool { return q.Asks != nil }
		above := slices.ContainsFunc(path[:i], func(q policy.Placed[hue]) bool { return usable(q) && q.Strategy == overrides })
		below := slices.ContainsFunc(path[i+1:], usable)
		if usable(p) && !above && (p.Strategy != defaults || !below) {
			alive = append(alive, p)
		}
	}
	// What suffices is not added to an override that has some of its own.
	suffices := func(r policy.Rule[hue]) bool { return r.Sufficient }
	for i, p := range alive {
		if slices.ContainsFunc(alive[:i], func(q policy.Placed[hue]) bool {
			return q.Strategy == mergeOverrides && slices.ContainsFunc(q.Asks, suffices)
		}) {
			alive[i].Asks = slices.DeleteFunc(slices.Clone(p.Asks), suffices)
		}
	}
	names := map[string]bool{}
	for _, p := range alive {
		for _, r := range p.Asks {
			names[r.Name] = true
		}
	}
	for name := range names {
		// The most established override has a name, or else the last default.
		var best *policy.Placed[hue]
		var value hue
		for i := range alive {
			at := slices.IndexFunc(alive[i].Asks, func(r policy.Rule[hue]) bool { return r.Name == name })
			if at < 0 || best != nil && best.Strategy.Overrides() {
				continue
			}
			best, value = &alive[i], alive[i].Asks[at].Value
		}
		rules = append(rules, fmt.Sprintf("%s=%s(%s)", name, value, best.Policy.Name))
	}
	slices.Sort(rules)
	return rules
}

// TestCombineAgainstOracle compares what is combined with an answer from the other end.
func TestCombineAgainstOracle(t *testing.T) {
	targets := []policy.Target{
		on(kind.GatewayClass, "c", ""), on(kind.Gateway, "g", ""), on(kind.Gateway, "g", "http"),
		on(kind.HTTPRoute, "r", ""), on(kind.HTTPRoute, "r", "first"),
	}
	rules := rapid.SampledFrom([]string{"-", "", "a=1", "b=1", "a=1 b=1", "a=1 b=1 c=1", "c=1", "s|=1", "a=1 s|=1", "s|=1 t|=1"})
	draw := rapid.Custom(func(t *rapid.T) policy.Placed[hue] {
		return says("", policy.Strategy(rapid.IntRange(0, 3).Draw(t, "strategy")), rapid.SampledFrom(targets).Draw(t, "target"), rules.Draw(t, "rules"))
	})
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SliceOfN(draw, 0, 7).Draw(t, "path")
		slices.SortStableFunc(path, func(a, b policy.Placed[hue]) int {
			return cmp.Compare(slices.Index(targets, a.Target), slices.Index(targets, b.Target))
		})
		for i := range path {
			path[i].Policy.Name = fmt.Sprint("p", i)
		}
		e := policy.Combine(path)
		if e == nil {
			if len(path) > 0 {
				t.Fatal("policies say nothing")
			}
			return
		}
		if got, want := strings.Fields(printed(e)), combined(path); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
		for i, o := range e.Policies {
			if lost := o.InForce < o.Rules; lost != (len(o.By) > 0) && o.Rules > 0 || slices.Contains(o.By, o.Policy) {
				t.Errorf("%v of %d rules, and taken by %v", o.InForce, o.Rules, o.By)
			}
			if usable := path[i].Asks != nil; usable && o.Rules == 0 && len(e.Rules) > 0 && !o.Overridden() {
				t.Errorf("%s says that there shall be no rules, and is not said to be overridden although there are %d", o.Policy, len(e.Rules))
			}
			for _, by := range o.By {
				winner := slices.IndexFunc(e.Policies, func(o policy.Outcome) bool { return o.Policy == by })
				if w := e.Policies[winner]; w.InForce == 0 && w.Rules > 0 || winner == i {
					t.Errorf("%s is said to have lost to %s, which has lost", o.Policy, by)
				}
			}
		}
	})
}
