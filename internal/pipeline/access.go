package pipeline

import (
	"reflect"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
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
		return topology.Access(above.Effective)
	}
	return nil
}

// guard gives a host who may pass, by the AuthPolicies on the paths to the rules of its
// entries, whose attachments are in the same order. Where the table says it (guarded), that is
// what all inherit, and only routes with policies of their own have more to say. Otherwise what
// all inherit stands once, on the host, and rules for which something else is in force have
// that themselves.
func (p *Pipeline) guard(c *flow.Ctx, table ir.TableKey, guarded bool, in *translate.HostInput, attached []topology.AttachmentKey) {
	own := make([]*topology.RouteInheritance[topology.AuthRule], len(attached))
	some := false
	for i, at := range attached {
		var ok bool
		own[i], ok = flow.Get(c, p.Graph.Auth.Routes, at)
		some = some || ok
	}
	if guarded && !some {
		return
	}
	var host *ir.Access
	inherited := make([]*ir.Access, len(attached))
	if guarded {
		in.Around = p.around(c, table)
		host = accessAround(in.Around)
		for i := range inherited {
			inherited[i] = host
		}
	} else {
		alike := true
		for i, at := range attached {
			inherited[i] = p.inheritedAccess(c, at.Listener)
			alike = alike && reflect.DeepEqual(inherited[0], inherited[i])
		}
		if alike && len(attached) > 0 && inherited[0] != nil {
			host = inherited[0]
			in.Filters = &ir.Filters{Access: host}
		}
	}
	for i := range attached {
		e := &in.Entries[i]
		if own[i] != nil {
			e.Rules = guardedBy(e.Rules, host, accessOf(own[i]))
		} else if !reflect.DeepEqual(inherited[i], host) {
			e.Rules = guardedBy(e.Rules, host, func(string) *ir.Access { return inherited[i] })
		}
	}
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

// said is who may pass, for a level that has to say so: everybody where nothing is in force.
func said(a *ir.Access) *ir.Access {
	if a == nil {
		return &ir.Access{}
	}
	return a
}

// accessOf returns who may pass by each rule of a route with policies of its own.
func accessOf(own *topology.RouteInheritance[topology.AuthRule]) func(rule string) *ir.Access {
	done := map[*topology.EffectiveAuth]*ir.Access{}
	return func(rule string) *ir.Access {
		e := own.On(rule)
		a, ok := done[e]
		if !ok {
			a = topology.Access(e)
			done[e] = a
		}
		return a
	}
}

// guardedBy returns the rules with who may pass by each, by its name, where that is not what
// is in force around them.
func guardedBy(rules []*ir.Rule, around *ir.Access, of func(rule string) *ir.Access) []*ir.Rule {
	var out []*ir.Rule
	for i, r := range rules {
		a := of(r.Source.Title)
		if reflect.DeepEqual(a, around) || a == nil && around.IsOpen() {
			continue
		}
		if out == nil {
			out = slices.Clone(rules)
		}
		rule := *r
		rule.Filters.Access = said(a)
		out[i] = &rule
	}
	if out == nil {
		return rules
	}
	return out
}
