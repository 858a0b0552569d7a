package pipeline

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// declareTraffic declares how requests and answers pass.
func (p *Pipeline) declareTraffic() {
	nothing := &ir.Traffic{}
	p.traffic = inForce[ir.Traffic]{
		equal: (*ir.Traffic).Equal,
		open:  func(t *ir.Traffic) bool { return t.Equal(nothing) },
		set:   func(f *ir.Filters, t *ir.Traffic) { f.Traffic = t },
	}
	declareInForce(&p.traffic, "traffic", p.Graph.Traffic, traffic.InForce)
}

// pass gives a host how its requests and answers pass, and has its rules lead to the backends as these
// are to be for them.
func (p *Pipeline) pass(c *flow.Ctx, in *translate.HostInput, attached []topology.AttachmentKey) {
	l := p.traffic.level(c, in, attached)
	if l == nil {
		return
	}
	for i := range in.Entries {
		in.Entries[i].Rules = withBackends(in.Entries[i].Rules, l.says[i])
	}
}

// withBackends returns the rules with their backends as policies want them, by the names of the rules.
func withBackends(rules []*ir.Rule, says func(rule string) *ir.Traffic) []*ir.Rule {
	var out []*ir.Rule
	for i, r := range rules {
		t := says(r.Source.Title)
		if !slices.ContainsFunc(r.Backends, func(b ir.WeightedBackend) bool { return b.Backend.For(t) != b.Backend }) {
			continue
		}
		if out == nil {
			out = slices.Clone(rules)
		}
		rule := *r
		rule.Backends = slices.Clone(r.Backends)
		for j := range rule.Backends {
			rule.Backends[j].Backend = rule.Backends[j].Backend.For(t)
		}
		out[i] = &rule
	}
	if out == nil {
		return rules
	}
	return out
}
