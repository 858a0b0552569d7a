package topology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// model is a drawn world, as simple as it can be said: what is attached to what, and which
// policies there are in which order of age.
type model struct {
	gateways []string
	// routes are the Gateways of each route, and rules the number of its rules; every other
	// rule has a name.
	routes   map[string][]string
	rules    map[string]int
	policies []modelPolicy
}

type modelPolicy struct {
	name, kind, target, section string
	overrides, merge            bool
	rules                       map[string]string
}

func (m *model) ruleName(i int) string {
	if i%2 == 0 {
		return fmt.Sprint("n", i)
	}
	return ""
}

// answers says what is in force on every path, from GEP-713's text: of two policies the one
// higher up is established, then the older one; the strategy of the established one says
// which of the two has a rule. Nothing of it is computed as the graph does.
func (m *model) answers() (out []string) {
	for route, gateways := range m.routes {
		for _, g := range gateways {
			for i := range m.rules[route] {
				text := g + " " + route
				if i > 0 {
					text += " " + ruleCalled(i, m.ruleName(i))
				}
				out = append(out, text+": "+m.inForce(g, route, m.ruleName(i)))
			}
		}
	}
	slices.Sort(out)
	return out
}

func (m *model) inForce(gateway, route, rule string) string {
	levels := []struct{ kind, name, section string }{
		{"GatewayClass", "any", ""}, {"Gateway", gateway, ""}, {"Gateway", gateway, "http"}, {"HTTPRoute", route, ""}, {"HTTPRoute", route, rule},
	}
	var path []modelPolicy
	for i, l := range levels {
		if i == 4 && rule == "" {
			continue
		}
		for _, p := range m.policies {
			if p.kind == l.kind && p.target == l.name && p.section == l.section {
				path = append(path, p)
			}
		}
	}
	// A policy is out of it if a more established one lets nobody else speak, or if it would
	// give way as a whole and somebody challenges it.
	alive := func(i int) bool {
		silenced := slices.ContainsFunc(path[:i], func(p modelPolicy) bool { return p.overrides && !p.merge })
		gaveWay := !path[i].overrides && !path[i].merge && i < len(path)-1
		return !silenced && !gaveWay
	}
	rules := map[string]string{}
	fixed := map[string]bool{}
	for i, p := range path {
		if !alive(i) {
			continue
		}
		for name, value := range p.rules {
			if !fixed[name] {
				rules[name], fixed[name] = fmt.Sprintf("%s=%s(%s)", name, value, p.name), p.overrides
			}
		}
	}
	var out []string
	for _, r := range rules {
		out = append(out, r)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func ruleCalled(i int, name string) string {
	if name != "" {
		return name
	}
	return fmt.Sprintf("rule-%d", i+1)
}

func drawModel(t *rapid.T) *model {
	m := &model{routes: map[string][]string{}, rules: map[string]int{}}
	for i := range rapid.IntRange(1, 3).Draw(t, "gateways") {
		m.gateways = append(m.gateways, fmt.Sprint("g", i))
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "routes") {
		route := fmt.Sprint("r", i)
		m.routes[route] = rapid.SliceOfNDistinct(rapid.SampledFrom(m.gateways), 1, len(m.gateways), rapid.ID).Draw(t, "parents")
		m.rules[route] = rapid.IntRange(1, 4).Draw(t, "rules")
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "policies") {
		m.policies = append(m.policies, drawPolicy(t, fmt.Sprint("p", i)))
	}
	return m
}

func drawPolicy(t *rapid.T, name string) modelPolicy {
	p := modelPolicy{name: name, overrides: rapid.Bool().Draw(t, "overrides"), merge: rapid.Bool().Draw(t, "merge"), rules: map[string]string{}}
	switch rapid.IntRange(0, 4).Draw(t, "level") {
	case 0:
		p.kind, p.target = "GatewayClass", "any"
	case 1, 2:
		p.kind, p.target = "Gateway", fmt.Sprint("g", rapid.IntRange(0, 2).Draw(t, "gateway"))
		p.section = rapid.SampledFrom([]string{"", "http"}).Draw(t, "listener")
	default:
		p.kind, p.target = "HTTPRoute", fmt.Sprint("r", rapid.IntRange(0, 4).Draw(t, "route"))
		p.section = rapid.SampledFrom([]string{"", "n0", "n2"}).Draw(t, "rule")
	}
	for _, rule := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID).Draw(t, "of") {
		p.rules[rule] = rapid.SampledFrom([]string{"red", "blue"}).Draw(t, "color")
	}
	return p
}

func (m *model) routeText(name string) string {
	parents := make([]string, len(m.routes[name]))
	for i, g := range m.routes[name] {
		parents[i] = fmt.Sprintf("{name: %s}", g)
	}
	rules := make([]string, m.rules[name])
	for i := range rules {
		rules[i] = "{}"
		if n := m.ruleName(i); n != "" {
			rules[i] = fmt.Sprintf("{name: %s}", n)
		}
	}
	return fmt.Sprintf("kind: HTTPRoute\nmetadata: {name: %s}\nspec: {parentRefs: [%s], rules: [%s]}",
		name, strings.Join(parents, ", "), strings.Join(rules, ", "))
}

func (p modelPolicy) text() string {
	var rules []string
	for name, value := range p.rules {
		rules = append(rules, name+": "+value)
	}
	target := p.target
	if p.section != "" {
		target += "#" + p.section
	}
	return color(p.name, p.kind, target, fmt.Sprintf("overrides: %t, merge: %t, colors: {%s}", p.overrides, p.merge, strings.Join(rules, ", ")))
}

// TestOracle compares what the graph says of random worlds with what GEP-713's text says of
// them, when they are made and after each of some changes; and what the graph says of a
// change with what differs.
func TestOracle(t *testing.T) {
	paths := 0
	rapid.Check(t, func(rt *rapid.T) {
		m := drawModel(rt)
		texts := []string{class}
		for _, g := range m.gateways {
			texts = append(texts, gateway(g, ""))
		}
		for route := range m.routes {
			texts = append(texts, m.routeText(route))
		}
		for _, p := range m.policies {
			texts = append(texts, p.text())
		}
		w := newWorld(t, false, texts...)
		last := w.lines()
		paths += len(last)
		m.compare(rt, last)
		for range 3 {
			var ch *topology.Changes
			if len(m.policies) > 0 && rapid.Bool().Draw(rt, "delete") {
				i := rapid.IntRange(0, len(m.policies)-1).Draw(rt, "which")
				ch = w.update(t, nil, w.colors.Node("ns", m.policies[i].name))
				m.policies = slices.Delete(m.policies, i, i+1)
			} else {
				p := drawPolicy(rt, fmt.Sprint("new", rapid.IntRange(0, 1).Draw(rt, "name")))
				m.policies = append(slices.DeleteFunc(m.policies, func(q modelPolicy) bool { return q.name == p.name }), p)
				ch = w.apply(t, p.text())
			}
			now := w.lines()
			paths += len(now)
			m.compare(rt, now)
			for _, c := range w.colors.Changes(ch) {
				text := print(c.Path) + ": "
				if !slices.Contains(last, text+inForce(c.Before)) || !slices.Contains(now, text+inForce(c.After)) {
					rt.Fatalf("%s is said to have changed from %s to %s", text, inForce(c.Before), inForce(c.After))
				}
			}
			told := strings.Join(strings.Split(w.changed(ch), "\n"), "\n")
			for i, line := range now {
				if line != last[i] && !strings.Contains(told, line[:strings.Index(line, ":")]+": ") {
					rt.Fatalf("nobody is told of %s, which was %s", line, last[i])
				}
			}
			last = now
		}
	})
	t.Logf("%d paths", paths)
}

// lines writes what is in force on all paths, sorted.
func (w *world) lines() []string {
	out := strings.Split(w.effective(), "\n")
	slices.Sort(out)
	return out
}

func (m *model) compare(t *rapid.T, got []string) {
	if want := m.answers(); !slices.Equal(got, want) {
		t.Fatalf("in force:\n%s\nwant\n%s\nof %+v", strings.Join(got, "\n"), strings.Join(want, "\n"), m)
	}
}
