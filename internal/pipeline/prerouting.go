package pipeline

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// indexPrerouting finds the listeners of a table that have filters before routing. Hosts of other tables don't
// look for any.
func (p *Pipeline) indexPrerouting() *flow.Index[ir.TableKey, topology.ListenerKey, *topology.Listener] {
	out := flow.NewIndex(p.Graph.Listeners,
		func(k topology.ListenerKey, l *topology.Listener, yield func(ir.TableKey)) {
			if table, ok := translate.RouteTable(k.Fleet(), l.Frontend()); ok && len(l.Filters) > 0 {
				yield(table)
			}
		}, topology.ListenerKey.Compare)
	out.Also(p.Graph.SetListeners)
	return out
}

// filtersOf returns the filters of a listener that has some.
func (p *Pipeline) filtersOf(c *flow.Ctx) func(*topology.Listener) *topology.ListenerFilters {
	return func(l *topology.Listener) *topology.ListenerFilters { return p.Graph.FiltersOf(c, l) }
}

// prerouting is what becomes of the requests of a host before a route is chosen, by the listeners that some routes on
// it are attached to. That is one, since no host is of two.
func (p *Pipeline) prerouting(c *flow.Ctx, attached []topology.AttachmentKey) (out *ir.Prerouting) {
	var first topology.ListenerKey
	for i, at := range attached {
		if i > 0 && at.Listener == first {
			continue
		}
		l, ok := p.Graph.Listener(c, at.Listener)
		if !ok {
			continue
		}
		var here *ir.Prerouting
		if len(l.Filters) > 0 {
			here, _ = translate.Prerouting(p.Graph.FiltersOf(c, l))
		}
		if i == 0 {
			first, out = at.Listener, here
		} else if here != nil || out != nil {
			return &ir.Prerouting{Closed: true}
		}
	}
	return out
}
