package pipeline

import (
	"reflect"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// declarePortFilters declares what all requests that come by a port meet: who may pass, and what is said of
// their traffic, where all its listeners say the same, and by which policies. A policy of a Gateway with
// thousands of hosts stands once then.
func (p *Pipeline) declarePortFilters() {
	byPort := flow.NewIndex(p.Graph.Listeners,
		func(_ topology.ListenerKey, l *topology.Listener, yield func(PortKey)) {
			if keepsHosts(l) {
				yield(KeyOfPort(l))
			}
		}, topology.ListenerKey.Compare)
	byPort.Also(p.Graph.SetListeners)
	own := portsWithOwnPolicies(p, "", p.Graph.Auth)
	ownTraffic := portsWithOwnPolicies(p, "traffic-", p.Graph.Traffic)
	p.portFilters = flow.Group("port-filters", byPort,
		func(c *flow.Ctx, k PortKey, members flow.Members[topology.ListenerKey, *topology.Listener]) (*ir.Filters, bool) {
			f := &ir.Filters{
				Access: agreed(c, k, own, members, func(at topology.ListenerKey) *ir.Access { return p.inheritedAccess(c, at) }),
				Traffic: agreed(c, k, ownTraffic, members, func(at topology.ListenerKey) *ir.Traffic {
					t, _ := flow.Get(c, p.traffic.inherited(at), at)
					return t
				}),
			}
			return f, f.Access != nil || f.Traffic != nil
		})
	p.portPolicies = flow.Group("port-policies", byPort,
		func(c *flow.Ctx, k PortKey, members flow.Members[topology.ListenerKey, *topology.Listener]) ([]object.Key, bool) {
			var out []object.Key
			if f, _ := flow.Get(c, p.portFilters, k); accessAround(f) == nil {
				return nil, false
			}
			for i := range speaking(c, k, own, members) {
				at, _ := members.At(i)
				above := p.Graph.Auth.OnListener(c, at)
				if above == nil {
					continue
				}
				for _, o := range above.Effective.Outcomes() {
					out = append(out, object.Key{Kind: kind.AuthPolicy, Name: o.Policy})
				}
			}
			slices.SortFunc(out, object.Key.Compare)
			return slices.Compact(out), len(out) > 0
		}, flow.Equal(slices.Equal[[]object.Key]))
}

// speaking is how many listeners of a port have to be asked: where none has a policy of its own, the first speaks
// for all of them.
func speaking(c *flow.Ctx, k PortKey, own flow.Table[PortKey, struct{}], members flow.Members[topology.ListenerKey, *topology.Listener]) int {
	if _, several := flow.Get(c, own, k); several {
		return members.Len()
	}
	return 1
}

// agreed is what all listeners of a port say; nil where one says nothing, or something else.
func agreed[F any](
	c *flow.Ctx, k PortKey, own flow.Table[PortKey, struct{}], members flow.Members[topology.ListenerKey, *topology.Listener],
	says func(topology.ListenerKey) *F,
) (all *F) {
	for i := range speaking(c, k, own, members) {
		at, _ := members.At(i)
		f := says(at)
		if f == nil || i > 0 && !reflect.DeepEqual(f, all) {
			return nil
		}
		all = f
	}
	return all
}

// portsWithOwnPolicies declares the ports of which a listener inherits more than all of the Gateway do.
func portsWithOwnPolicies[R topology.Asks[R]](p *Pipeline, prefix string, of *topology.Inherited[R]) flow.Table[PortKey, struct{}] {
	at := func(of flow.Table[topology.ListenerKey, *topology.Listener]) func(*flow.Ctx, topology.ListenerKey, *topology.Inheritance[R], func(topology.ListenerKey, PortKey)) {
		return func(c *flow.Ctx, k topology.ListenerKey, in *topology.Inheritance[R], emit func(topology.ListenerKey, PortKey)) {
			if l, ok := flow.Get(c, of, k); ok && in.HasOwn() {
				emit(k, KeyOfPort(l))
			}
		}
	}
	same := flow.Equal(flow.Same[PortKey])
	return flow.Keys("ports-with-own-"+prefix+"policies", func(_ topology.ListenerKey, at PortKey, yield func(PortKey)) { yield(at) },
		flow.Map("own-"+prefix+"policies-of-listeners", of.Listeners, at(p.Graph.Listeners), same),
		flow.Map("own-"+prefix+"policies-of-set-listeners", of.SetListeners, at(p.Graph.SetListeners), same))
}

// inheritedAccess is who may pass by the policies of a listener and of what is above it.
func (p *Pipeline) inheritedAccess(c *flow.Ctx, at topology.ListenerKey) *ir.Access {
	if above := p.Graph.Auth.OnListener(c, at); above != nil {
		return p.access(c, at.Fleet(), above.Effective)
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
			says[i] = p.accessOf(c, attached[i].Listener.Fleet(), own)
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
func (p *Pipeline) accessOf(c *flow.Ctx, gateway object.Name, own *topology.RouteInheritance[auth.Rule]) func(rule string) *ir.Access {
	done := map[*auth.Effective]*ir.Access{}
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
