package pipeline

import (
	"slices"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

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
	declareInForce(&p.traffic, "traffic", p.Graph.Traffic, func(c *flow.Ctx, at topology.ListenerKey, e *traffic.Effective) *ir.Traffic {
		l, ok := flow.Get(c, topology.TableOf[*topology.Listener](at, p.Graph.Listeners, p.Graph.SetListeners), at)
		return p.withPages(c, traffic.InForce(e)).Over(ok && l.Protocol == gwv1.HTTPSProtocolType)
	})
}

// pass gives a host how its requests and answers pass, and has its rules lead to the backends as these
// are to be for them. The table has what all of its hosts agree in (front).
func (p *Pipeline) pass(c *flow.Ctx, table ir.TableKey, front bool, in *translate.HostInput, attached []topology.AttachmentKey) {
	var outer *ir.Traffic
	if front {
		around := p.trafficAround(c, table)
		if outer = around.Traffic; in.Around == nil {
			in.Around = around
		}
	}
	l := p.traffic.level(c, in, attached, outer)
	if l == nil {
		return
	}
	for i := range in.Entries {
		in.Entries[i].Rules = p.withBackends(c, attached[i], in.Entries[i].Rules, l.says[i])
	}
}

// trafficAround are the filters in front of the hosts of a table by which requests and answers pass.
func (p *Pipeline) trafficAround(c *flow.Ctx, table ir.TableKey) *ir.Filters {
	return &ir.Filters{Traffic: p.around(c, table).Traffic}
}

// withBackends returns the rules of an attachment with their backends as policies want them, by the names of the rules.
func (p *Pipeline) withBackends(c *flow.Ctx, at topology.AttachmentKey, rules []*ir.Rule, says func(rule string) *ir.Traffic) []*ir.Rule {
	var out []*ir.Rule
	for i, r := range rules {
		t := says(r.Source.Title)
		wanted := func(b ir.WeightedBackend) ir.BackendKey {
			backend := b.Backend.Backend()
			if !backend.Settings.OfService {
				return b.Backend.For(t)
			}
			e, _ := flow.Get(c, p.Graph.Traffic.Services, topology.ServicePlace{AttachmentKey: at, Rule: r.Source.Title, Service: backend.Object})
			return backend.Under(traffic.InForce(e)).Key()
		}
		if !slices.ContainsFunc(r.Backends, func(b ir.WeightedBackend) bool { return wanted(b) != b.Backend }) {
			continue
		}
		if out == nil {
			out = slices.Clone(rules)
		}
		rule := *r
		rule.Backends = slices.Clone(r.Backends)
		for j := range rule.Backends {
			rule.Backends[j].Backend = wanted(rule.Backends[j])
		}
		out[i] = &rule
	}
	if out == nil {
		return rules
	}
	return out
}
