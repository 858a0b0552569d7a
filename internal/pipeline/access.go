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
// what all inherit, and only routes with policies of their own have more to say. What all rules
// of a host agree in stands once, on the host: thousands of keys are not there for each rule.
// Otherwise what all inherit does, and rules for which something else is in force have that
// themselves.
func (p *Pipeline) guard(c *flow.Ctx, table ir.TableKey, guarded bool, in *translate.HostInput, attached []topology.AttachmentKey) {
	says := p.ownAccess(c, attached)
	if len(attached) == 0 || says == nil && (guarded || !p.inheritsAccess(c, attached)) {
		return
	}
	if says == nil {
		says = make([]func(rule string) *ir.Access, len(attached))
	}
	if guarded {
		in.Around = p.around(c, table)
	}
	host := accessAround(in.Around)
	inherited := make([]*ir.Access, len(attached))
	for i, at := range attached {
		if inherited[i] = host; !guarded {
			inherited[i] = p.inheritedAccess(c, at.Listener)
		}
		if says[i] == nil {
			says[i] = func(string) *ir.Access { return inherited[i] }
		}
	}
	all, ok := agreed(in.Entries, says)
	if !ok && !guarded {
		all, ok = inherited[0], !slices.ContainsFunc(inherited, func(a *ir.Access) bool { return !reflect.DeepEqual(inherited[0], a) })
	}
	if ok && !reflect.DeepEqual(all, host) {
		host = said(all)
		in.Filters = &ir.Filters{Access: host}
	}
	for i := range attached {
		in.Entries[i].Rules = guardedBy(in.Entries[i].Rules, host, says[i])
	}
}

// ownAccess is who may pass by each rule of each of some routes, nil for one without policies of
// its own; all of it is nil where none of them has any.
func (p *Pipeline) ownAccess(c *flow.Ctx, attached []topology.AttachmentKey) (says []func(rule string) *ir.Access) {
	for i := range attached {
		if own, ok := flow.Get(c, p.Graph.Auth.Routes, attached[i]); ok {
			if says == nil {
				says = make([]func(rule string) *ir.Access, len(attached))
			}
			says[i] = accessOf(own)
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

// agreed is who may pass by all rules of all entries; false if they don't agree.
func agreed(entries []translate.HostEntry, says []func(rule string) *ir.Access) (all *ir.Access, ok bool) {
	for i := range entries {
		for _, r := range entries[i].Rules {
			a := says[i](r.Source.Title)
			if ok && !reflect.DeepEqual(a, all) {
				return nil, false
			}
			all, ok = a, true
		}
	}
	return all, ok
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
