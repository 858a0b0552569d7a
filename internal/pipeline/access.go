package pipeline

import (
	"reflect"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// declarePortFilters declares what all requests that come by a port meet: who may pass, where all
// its listeners say the same. A policy of a Gateway with thousands of hosts stands once then.
func (p *Pipeline) declarePortFilters(byPort *flow.Index[PortKey, topology.ListenerKey, *topology.Listener]) {
	p.portFilters = flow.Group("port-filters", byPort,
		func(c *flow.Ctx, _ PortKey, members flow.Members[topology.ListenerKey, *topology.Listener]) (*ir.Filters, bool) {
			var all *ir.Access
			first := true
			for at := range members.All() {
				a := p.inheritedAccess(c, at)
				if a == nil || !first && !reflect.DeepEqual(a, all) {
					return nil, false
				}
				all, first = a, false
			}
			return &ir.Filters{Access: all}, all != nil
		})
}

// inheritedAccess is who may pass by the policies of a listener and of what is above it.
func (p *Pipeline) inheritedAccess(c *flow.Ctx, at topology.ListenerKey) *ir.Access {
	if above := p.Graph.Auth.OnListener(c, at); above != nil {
		return p.access(c, at.Gateway(), above.Effective)
	}
	return nil
}

// guard gives a host who may pass, by the AuthPolicies on the paths to the rules of its
// entries, whose attachments are in the same order. Where the table says it (guarded), that is
// what all inherit, and only routes with policies of their own have more to say.
func (p *Pipeline) guard(c *flow.Ctx, table ir.TableKey, guarded bool, in *translate.HostInput, attached []topology.AttachmentKey) {
	says := p.ownAccess(c, attached)
	if len(attached) == 0 || says == nil && (guarded || !p.inheritsAccess(c, attached)) {
		return
	}
	if says == nil {
		says = make([]func(rule string) *ir.Access, len(attached))
	}
	l := leveling[ir.Access]{
		says: says, inherited: make([]*ir.Access, len(attached)),
		equal: func(a, b *ir.Access) bool { return reflect.DeepEqual(a, b) },
		open:  (*ir.Access).IsOpen,
		set:   func(f *ir.Filters, a *ir.Access) { f.Access = a },
	}
	if guarded {
		in.Around = p.around(c, table)
		l.outer, l.above = accessAround(in.Around), true
	}
	for i, at := range attached {
		if l.inherited[i] = l.outer; !guarded {
			l.inherited[i] = p.inheritedAccess(c, at.Listener)
		}
	}
	l.put(in)
}

// ownAccess is who may pass by each rule of each of some routes, nil for one without policies of
// its own; all of it is nil where none of them has any.
func (p *Pipeline) ownAccess(c *flow.Ctx, attached []topology.AttachmentKey) (says []func(rule string) *ir.Access) {
	for i := range attached {
		if own, ok := flow.Get(c, p.Graph.Auth.Routes, attached[i]); ok {
			if says == nil {
				says = make([]func(rule string) *ir.Access, len(attached))
			}
			says[i] = p.accessOf(c, attached[i].Listener.Gateway(), own)
		}
	}
	return says
}

// inheritsAccess reports whether policies of a listener, or of what is above it, are in force for
// any of some routes.
func (p *Pipeline) inheritsAccess(c *flow.Ctx, attached []topology.AttachmentKey) bool {
	for i := range attached {
		if p.Graph.Auth.OnListener(c, attached[i].Listener) != nil {
			return true
		}
	}
	return false
}

// around are the filters in front of the hosts of a table; nil for none.
func (p *Pipeline) around(c *flow.Ctx, table ir.TableKey) *ir.Filters {
	at, _ := flow.Get(c, p.RouteTables, table)
	return at.filters
}

// accessAround is who may pass by the filters in front of a host; nil where they don't say.
func accessAround(f *ir.Filters) *ir.Access {
	if f == nil {
		return nil
	}
	return f.Access
}

// accessOf returns who may pass by each rule of a route with policies of its own, on a Gateway.
func (p *Pipeline) accessOf(c *flow.Ctx, gateway object.Name, own *topology.RouteInheritance[topology.AuthRule]) func(rule string) *ir.Access {
	done := map[*topology.EffectiveAuth]*ir.Access{}
	return func(rule string) *ir.Access {
		e := own.On(rule)
		a, ok := done[e]
		if !ok {
			a = p.access(c, gateway, e)
			done[e] = a
		}
		return a
	}
}
