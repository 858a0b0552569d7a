package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Effective is what the policies of a kind say together on one path.
type Effective struct {
	Kind     string `json:"kind"` // of the policies
	Gateway  string `json:"gateway"`
	Listener string `json:"listener"`
	Route    string `json:"route,omitempty"` // empty for all routes without policies of their own
	Rule     string `json:"rule,omitempty"`  // empty for all rules without policies of their own
	// Service is one with policies of its own, to which the rule sends requests; empty for all others. Only what is
	// said of backends is told then.
	Service string `json:"service,omitempty"`
	// Rules are those in force.
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
	// Undated are those of OverriddenBy for the same target of which nothing says which one is older.
	Undated []string `json:"undated,omitempty"`
	Problem string   `json:"problem,omitempty"`
}

// EffectivePolicies returns what is in force for an object: a Gateway, a ListenerSet, a route or a Service,
// or for one section of it, a listener or a named rule; by path, and there kind by kind. It is not
// ok where no listener and no attachment of a route has to do with the object.
func EffectivePolicies(p *pipeline.Pipeline, of object.Key, section string) (paths []Effective, ok bool) {
	own := map[place]bool{}
	p.Engine.View(func(c *flow.Ctx) {
		e := asked{p, c, own, of, section}
		paths = slices.Concat(
			effectiveOf(e, auth.Kind, p.Graph.AuthPolicies, p.Graph.Auth,
				func(node *auth.Policy, rule string) any { return auth.RuleSpec(node.Object, rule) }),
			effectiveOf(e, limits.Kind, p.Graph.RateLimitPolicies, p.Graph.RateLimits,
				func(node *limits.Policy, limit string) any { return limits.Spec(node.Object, limit) }),
			effectiveOf(e, traffic.Kind, p.Graph.TrafficPolicies, p.Graph.Traffic,
				func(node *traffic.Policy, setting string) any { return traffic.Spec(node.Object, setting) }))
	})
	paths = slices.DeleteFunc(paths, func(e Effective) bool { return !own[e.place()] })
	slices.SortStableFunc(paths, func(a, b Effective) int {
		return cmp.Or(strings.Compare(a.Gateway, b.Gateway), strings.Compare(a.Listener, b.Listener),
			strings.Compare(a.Rule, b.Rule), strings.Compare(a.Service, b.Service), strings.Compare(a.Kind, b.Kind))
	})
	return paths, len(paths) > 0
}

// place is a path without what is in force there.
type place struct{ gateway, listener, route, rule, service string }

func (e *Effective) place() place { return place{e.Gateway, e.Listener, e.Route, e.Rule, e.Service} }

// asked is of what people ask.
type asked struct {
	p *pipeline.Pipeline
	c *flow.Ctx
	// own are the paths on which policies of any kind say something else than on the path of which
	// they are a part: all kinds are told of there, lest a rule with limits of its own looks open.
	own     map[place]bool
	of      object.Key
	section string
}

// effective is what the policies of a kind say together, whose rules are R.
type effective[R topology.Asks[R]] struct {
	asked
	kind      string
	inherited *topology.Inherited[R]
	// spec returns a rule as its policy has it.
	spec func(of object.Name, rule string) any
	// created returns when a policy came; zero where nothing says it.
	created func(of object.Name) time.Time
}

// effectiveOf returns what policies of a kind say together. Spec returns a rule of a policy as that has it.
func effectiveOf[P any, R topology.Asks[R]](
	a asked, k policy.Kind[P, policy.Rules[R]], nodes flow.Table[object.Name, P], inherited *topology.Inherited[R], spec func(node P, rule string) any,
) []Effective {
	e := effective[R]{a, k.Kind.Name(), inherited, func(of object.Name, rule string) any {
		if node, ok := flow.Get(a.c, nodes, of); ok {
			return spec(node, rule)
		}
		return nil
	}, func(of object.Name) time.Time {
		if node, ok := flow.Get(a.c, nodes, of); ok {
			return k.Node(node).Created
		}
		return time.Time{}
	}}
	if d := a.p.Kinds.Of(a.of.Kind); d != nil && d.Family == kind.Route {
		return append(e.ofRoute(a.of, a.section), e.onServices(func(k topology.ServicePlace) bool {
			return k.Route == a.of && (a.section == "" || k.Rule == a.section)
		})...)
	}
	if kind.IsService(a.of.Kind) {
		return e.onServices(func(k topology.ServicePlace) bool { return k.Service == a.of })
	}
	return e.ofListeners(a.of, a.section)
}

// ofRoute returns the paths over a route: one for each listener that it is attached to, and
// for each rule with policies of its own.
func (e effective[R]) ofRoute(route object.Key, rule string) (out []Effective) {
	names := []string{""}
	if r, ok := flow.Get(e.c, e.p.Graph.Routes, route); ok {
		for _, name := range topology.RuleNames(r.Object) {
			if name != "" { // the others have what the whole route has
				names = append(names, name)
			}
		}
	}
	if rule != "" {
		names = []string{rule}
	}
	for at := range flow.All(e.c, e.p.Graph.Attachments) {
		if at.Route != route {
			continue
		}
		whole := e.inherited.On(e.c, at, "")
		for _, name := range names {
			in := e.inherited.On(e.c, at, name)
			path := e.path(at.Listener, route.String(), name, in)
			if name == "" || rule != "" || in != whole {
				e.own[path.place()] = true
			}
			out = append(out, path)
		}
	}
	return out
}

// onServices returns the paths to Services with policies of their own.
func (e effective[R]) onServices(told func(topology.ServicePlace) bool) (out []Effective) {
	if e.inherited.Services == nil {
		return nil
	}
	for k, in := range flow.All(e.c, e.inherited.Services) {
		if !told(k) {
			continue
		}
		path := e.path(k.Listener, k.Route.String(), k.Rule, in)
		if path.Service = k.Service.Name.String(); k.Service.Kind != kind.Service {
			path.Service = k.Service.String()
		}
		path.Rules = slices.DeleteFunc(path.Rules, func(r EffectiveRule) bool { return !strings.HasPrefix(r.Name, "backend.") })
		e.own[path.place()] = true
		out = append(out, path)
	}
	return out
}

func (e effective[R]) ofListeners(owner object.Key, listener string) (out []Effective) {
	for _, table := range []flow.Table[topology.ListenerKey, *topology.Listener]{e.p.Graph.Listeners, e.p.Graph.SetListeners} {
		for at := range flow.All(e.c, table) {
			ours := at.Owner() == owner || owner.Kind == kind.Gateway && at.Gateway() == owner.Name
			if !ours || listener != "" && at.Name() != listener {
				continue
			}
			var in *topology.Effective[R]
			if i := e.inherited.OnListener(e.c, at); i != nil {
				in = i.Effective
			}
			path := e.path(at, "", "", in)
			e.own[path.place()] = true
			out = append(out, path)
		}
	}
	return out
}

func (e effective[R]) path(at topology.ListenerKey, route, rule string, in *topology.Effective[R]) Effective {
	out := Effective{
		Kind: e.kind, Gateway: at.Gateway().String(), Listener: at.Name(), Route: route, Rule: rule,
		Rules: []EffectiveRule{}, Policies: []EffectivePolicy{},
	}
	if !at.Set().IsZero() {
		out.Listener = at.Set().String() + "/" + at.Name()
	}
	outcomes := in.Outcomes()
	for _, o := range outcomes {
		row := EffectivePolicy{
			Policy: o.Policy.String(), Target: o.Target.String(), Strategy: o.Strategy.String(),
			Rules: o.Rules, InForce: o.InForce, Problem: o.Refused,
		}
		for _, by := range o.By {
			row.OverriddenBy = append(row.OverriddenBy, by.String())
			same := slices.ContainsFunc(outcomes, func(other policy.Outcome) bool {
				return other.Policy == by && other.Target == o.Target && other.Strategy == o.Strategy
			})
			if same && (e.created(by).IsZero() || e.created(o.Policy).IsZero()) {
				row.Undated = append(row.Undated, by.String())
			}
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
