package view

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Effective is what AuthPolicies say together on one path.
type Effective struct {
	Gateway  string `json:"gateway"`
	Listener string `json:"listener"`
	Route    string `json:"route,omitempty"` // empty for all routes without policies of their own
	Rule     string `json:"rule,omitempty"`  // empty for all rules without policies of their own
	// Rules are those in force. Without any, everybody passes.
	Rules []EffectiveRule `json:"rules"`
	// Policies are those on the path, the most established one first.
	Policies []EffectivePolicy `json:"policies"`
}

// EffectiveRule is a rule in force, with where it is from.
type EffectiveRule struct {
	Name   string `json:"name"`
	Policy string `json:"policy"`
	Target string `json:"target"`
	Spec   any    `json:"spec"` // as the policy has it
}

// EffectivePolicy is what became of a policy on a path.
type EffectivePolicy struct {
	Policy       string   `json:"policy"`
	Target       string   `json:"target"`
	Strategy     string   `json:"strategy"`
	Rules        int      `json:"rules"`
	InForce      int      `json:"inForce"`
	OverriddenBy []string `json:"overriddenBy,omitempty"`
	Problem      string   `json:"problem,omitempty"`
}

// EffectiveAuth returns what is in force for an object: a Gateway, a ListenerSet or a route, or
// for one section of it, a listener or a named rule. It is not ok where no listener and no
// attachment of a route has to do with the object.
func EffectiveAuth(p *pipeline.Pipeline, of object.Key, section string) (paths []Effective, ok bool) {
	p.Engine.View(func(c *flow.Ctx) {
		e := effective{p, c}
		if d := p.Kinds.Of(of.Kind); d != nil && d.Family == kind.Route {
			paths = e.ofRoute(of, section)
		} else {
			paths = e.ofListeners(of, section)
		}
	})
	return paths, len(paths) > 0
}

type effective struct {
	p *pipeline.Pipeline
	c *flow.Ctx
}

// ofRoute returns the paths over a route: one for each listener that it is attached to, and
// for each rule with policies of its own.
func (e effective) ofRoute(route object.Key, rule string) (out []Effective) {
	names := []string{""}
	if r, ok := flow.Get(e.c, e.p.Graph.Routes, route); ok {
		names = append(names, topology.RuleNames(r.Object)...)
	}
	if rule != "" {
		names = []string{rule}
	}
	for at := range flow.All(e.c, e.p.Graph.Attachments) {
		if at.Route != route {
			continue
		}
		whole := e.p.Graph.Auth.On(e.c, at, "")
		for _, name := range names {
			in := e.p.Graph.Auth.On(e.c, at, name)
			if name == "" || rule != "" {
				out = append(out, e.path(at.Listener, route.String(), name, in))
			} else if in != whole {
				out = append(out, e.path(at.Listener, route.String(), name, in))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Effective) int {
		return strings.Compare(a.Gateway+"/"+a.Listener, b.Gateway+"/"+b.Listener)
	})
	return out
}

func (e effective) ofListeners(owner object.Key, listener string) (out []Effective) {
	for _, table := range []flow.Table[topology.ListenerKey, *topology.Listener]{e.p.Graph.Listeners, e.p.Graph.SetListeners} {
		for at := range flow.All(e.c, table) {
			ours := at.Owner() == owner || owner.Kind == kind.Gateway && at.Gateway == owner.Name
			if !ours || listener != "" && at.Name != listener {
				continue
			}
			var in *topology.EffectiveAuth
			if i := e.p.Graph.Auth.OnListener(e.c, at); i != nil {
				in = i.Effective
			}
			out = append(out, e.path(at, "", "", in))
		}
	}
	slices.SortFunc(out, func(a, b Effective) int { return strings.Compare(a.Gateway+"/"+a.Listener, b.Gateway+"/"+b.Listener) })
	return out
}

func (e effective) path(at topology.ListenerKey, route, rule string, in *topology.EffectiveAuth) Effective {
	out := Effective{
		Gateway: at.Gateway.String(), Listener: at.Name, Route: route, Rule: rule,
		Rules: []EffectiveRule{}, Policies: []EffectivePolicy{},
	}
	if !at.Set.IsZero() {
		out.Listener = at.Set.String() + "/" + at.Name
	}
	for _, o := range in.Outcomes() {
		row := EffectivePolicy{
			Policy: o.Policy.String(), Target: o.Target.String(), Strategy: o.Strategy.String(),
			Rules: o.Rules, InForce: o.InForce, Problem: o.Refused,
		}
		for _, by := range o.By {
			row.OverriddenBy = append(row.OverriddenBy, by.String())
		}
		out.Policies = append(out.Policies, row)
	}
	if in == nil {
		return out
	}
	for _, r := range in.Rules {
		from := in.Policies[r.From]
		out.Rules = append(out.Rules, EffectiveRule{
			Name: r.Name, Policy: from.Policy.String(), Target: from.Target.String(), Spec: e.spec(from.Policy, r.Name),
		})
	}
	return out
}

// spec returns a rule as its policy has it.
func (e effective) spec(of object.Name, rule string) any {
	node, ok := flow.Get(e.c, e.p.Graph.AuthPolicies, of)
	if !ok {
		return nil
	}
	return topology.AuthRuleSpec(node.Object, rule)
}
