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
// entries, whose attachments are in the same order. What all inherit from listeners stands
// once, on the host, unless it is around the host already; rules for which something else is
// in force have that themselves.
func (p *Pipeline) guard(c *flow.Ctx, in *translate.HostInput, attached []topology.AttachmentKey) {
	inherited := make([]*ir.Access, len(attached))
	alike := true
	for i, at := range attached {
		inherited[i] = p.inheritedAccess(c, at.Listener)
		alike = alike && reflect.DeepEqual(inherited[0], inherited[i])
	}
	host := accessAround(in.Around)
	if alike && len(attached) > 0 && !reflect.DeepEqual(host, inherited[0]) {
		host = said(inherited[0])
		in.Filters = &ir.Filters{Access: host}
	}
	for i, at := range attached {
		e := &in.Entries[i]
		if own, ok := flow.Get(c, p.Graph.Auth.Routes, at); ok {
			e.Rules = guarded(e.Rules, host, accessOf(own))
		} else if !alike {
			e.Rules = guarded(e.Rules, host, func(string) *ir.Access { return inherited[i] })
		}
	}
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

// unguarded are the filters of a host that answers everybody, whatever is in front of it; nil
// where nothing is.
func unguarded(around *ir.Filters) *ir.Filters {
	if accessAround(around) == nil {
		return nil
	}
	return &ir.Filters{Access: &ir.Access{}}
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

// guarded returns the rules with who may pass by each, by its name, where that is not what
// is in force around them.
func guarded(rules []*ir.Rule, around *ir.Access, of func(rule string) *ir.Access) []*ir.Rule {
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
