package pipeline

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// WithoutEffect is another implementation's policy that targets what is served here.
type WithoutEffect struct {
	Policy  foreign.Policy
	File    string // empty in a cluster
	Message string
}

func (w WithoutEffect) equal(o WithoutEffect) bool {
	return w.Policy.Equal(o.Policy) && w.File == o.File && w.Message == o.Message
}

// problem is what a person is shown.
func (w WithoutEffect) problem() source.Problem {
	return source.Problem{Key: w.Policy.Key, File: w.File, Line: w.Policy.Line, Reason: source.NoEffect, Message: w.Message}
}

// ProblemsOf are what a person is shown of some.
func ProblemsOf(list []WithoutEffect) (out []source.Problem) {
	for _, w := range list {
		out = append(out, w.problem())
	}
	return out
}

// declareForeign declares what is told of other implementations' policies, by where they stand.
func (p *Pipeline) declareForeign() {
	p.foreign = flow.NewInput[string, []foreign.Policy](p.Engine, "foreign-policies",
		flow.Equal(func(a, b []foreign.Policy) bool { return slices.EqualFunc(a, b, foreign.Policy.Equal) }))
	p.WithoutEffect = flow.Map("policies-without-effect", p.foreign,
		func(c *flow.Ctx, at string, list []foreign.Policy, emit func(string, []WithoutEffect)) {
			var out []WithoutEffect
			for _, policy := range list {
				if served := p.servedOf(c, policy.Targets); len(served) > 0 {
					out = append(out, withoutEffect(at, policy, served))
				}
			}
			if len(out) > 0 {
				emit(at, out)
			}
		}, flow.Equal(func(a, b []WithoutEffect) bool { return slices.EqualFunc(a, b, WithoutEffect.equal) }))
}

func withoutEffect(at string, policy foreign.Policy, served []object.Key) WithoutEffect {
	of := foreign.KindOf(policy.Key.Kind)
	var names []string
	for _, target := range served {
		names = append(names, target.String())
	}
	out := WithoutEffect{Policy: policy, File: at, Message: condition.ForeignPolicy(of.Of, strings.Join(names, ", "), of.Ours.Name())}
	if policy.Line == 0 {
		out.File = ""
	}
	return out
}

// servedOf returns which of some targets are served here.
func (p *Pipeline) servedOf(c *flow.Ctx, targets []object.Key) (served []object.Key) {
	for _, t := range targets {
		ok := false
		switch d := p.Kinds.Of(t.Kind); {
		case d == nil:
		case t.Kind == kind.GatewayClass:
			_, ok = flow.Get(c, p.Graph.Classes, t.Name.Name)
		case t.Kind == kind.Gateway:
			_, ok = flow.Get(c, p.Graph.Gateways, t.Name)
		case t.Kind == kind.ListenerSet:
			_, ok = flow.Get(c, p.Graph.ListenerSets, t.Name)
		case d.Family == kind.Route:
			_, ok = flow.Get(c, p.Graph.Routes, t)
		}
		if ok {
			served = append(served, t)
		}
	}
	return served
}
