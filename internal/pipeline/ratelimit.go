package pipeline

import (
	"cmp"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// Hosts and rules say by which limits requests are counted, and the filters that count say how
// many are let through. So an edit of how many looks at no host, however many there are.

// limitKey names a limit that is in force somewhere on a Gateway.
type limitKey struct {
	Gateway object.Name
	ir.RateLimitKey
}

func (k limitKey) String() string { return k.Gateway.String() + ": " + k.RateLimitKey.String() }

func (k limitKey) compare(o limitKey) int {
	return cmp.Or(k.Gateway.Compare(o.Gateway), k.Policy.Compare(o.Policy), cmp.Compare(k.Limit, o.Limit),
		k.On.Compare(o.On), cmp.Compare(k.Section, o.Section), cmp.Compare(envoy.RateLimitSlot(k.RateLimitKey), envoy.RateLimitSlot(o.RateLimitKey)))
}

// LimitSlot is a filter of a Gateway's proxies that counts requests.
type LimitSlot struct {
	Gateway object.Name
	Slot    int
}

func (k LimitSlot) String() string { return k.Gateway.String() + "/" + envoy.RateLimitFilter(k.Slot) }

// routeLimits is how requests for a route with policies of its own are counted.
type routeLimits struct {
	all   *ir.RateLimits
	rules map[string]*ir.RateLimits // by the names of rules with policies of their own
}

// Equal reports whether all requests are counted in the same way.
func (r *routeLimits) Equal(o *routeLimits) bool {
	if len(r.rules) != len(o.rules) || !r.all.Equal(o.all) {
		return false
	}
	for name, l := range r.rules {
		if other, ok := o.rules[name]; !ok || !l.Equal(other) {
			return false
		}
	}
	return true
}

func (r *routeLimits) on(rule string) *ir.RateLimits {
	if l, ok := r.rules[rule]; ok {
		return l
	}
	return r.all
}

// declareRateLimits declares which limits are in force where, and which filter has each.
func (p *Pipeline) declareRateLimits() {
	onListener := func(_ *flow.Ctx, k topology.ListenerKey, i *topology.Inheritance[limits.Limit], emit func(topology.ListenerKey, *ir.RateLimits)) {
		if l := limits.InForce(i.Effective); l != nil {
			emit(k, l)
		}
	}
	all := p.Graph.RateLimits
	p.listenerLimits = flow.Map("limits-on-listeners", all.Listeners, onListener)
	p.setListenerLimits = flow.Map("limits-on-set-listeners", all.SetListeners, onListener)
	p.routeLimits = flow.Map("limits-on-routes", all.Routes,
		func(_ *flow.Ctx, k topology.AttachmentKey, r *topology.RouteInheritance[limits.Limit], emit func(topology.AttachmentKey, *routeLimits)) {
			out := &routeLimits{all: limits.InForce(r.Effective)}
			for name, e := range r.Rules() {
				if out.rules == nil {
					out.rules = map[string]*ir.RateLimits{}
				}
				out.rules[name] = limits.InForce(e)
			}
			emit(k, out)
		})

	local := inForce(p, "limits", func(gateway object.Name, l *ir.RateLimits, yield func(limitKey)) {
		for i := range l.Counted {
			if l.Counted[i].Global == nil {
				yield(limitKey{gateway, l.Counted[i].Key})
			}
		}
	})
	p.SharedLimits = inForce(p, "shared-limits", func(gateway object.Name, l *ir.RateLimits, yield func(object.Name)) {
		if slices.ContainsFunc(l.Counted, func(c ir.Counted) bool { return c.Global != nil }) {
			yield(gateway)
		}
	})
	p.limitsBySlot = flow.NewIndex(local, func(k limitKey, _ struct{}, yield func(LimitSlot)) {
		yield(LimitSlot{k.Gateway, envoy.RateLimitSlot(k.RateLimitKey)})
	}, limitKey.compare)
	p.RateLimits = flow.Group("limits-by-filter", p.limitsBySlot,
		func(c *flow.Ctx, _ LimitSlot, members flow.Members[limitKey, struct{}]) ([]ir.RateLimit, bool) {
			out := make([]ir.RateLimit, 0, members.Len())
			for k := range members.All() {
				node, ok := flow.Get(c, p.Graph.RateLimitPolicies, k.Policy)
				if !ok {
					continue
				}
				for _, r := range node.Asks {
					if r.Name == k.Limit {
						out = append(out, ir.RateLimit{Key: k.RateLimitKey, Rates: r.Value.Rates, Counters: r.Value.Counters})
					}
				}
			}
			return out, len(out) > 0
		})
}

// inForce declares the keys of what is in force somewhere: on listeners, or for routes.
func inForce[K comparable](p *Pipeline, name string, of func(gateway object.Name, l *ir.RateLimits, yield func(K))) *flow.Derived[K, struct{}] {
	some := func(gateway object.Name, l *ir.RateLimits, yield func(K)) {
		if l != nil {
			of(gateway, l, yield)
		}
	}
	ofListeners := flow.Keys(name+"-of-listeners",
		func(k topology.ListenerKey, l *ir.RateLimits, yield func(K)) { some(k.Gateway(), l, yield) },
		p.listenerLimits, p.setListenerLimits)
	ofRoutes := flow.Keys(name+"-of-routes",
		func(k topology.AttachmentKey, r *routeLimits, yield func(K)) {
			some(k.Listener.Gateway(), r.all, yield)
			for _, l := range r.rules {
				some(k.Listener.Gateway(), l, yield)
			}
		}, p.routeLimits)
	return flow.Keys(name, func(k K, _ struct{}, yield func(K)) { yield(k) }, ofListeners, ofRoutes)
}

// declareLimitFilters declares what proxies are sent of limits.
func (p *Pipeline) declareLimitFilters() {
	p.LimitFilters = carry(p, "limit-filters", flow.Map("plain-limit-filters", p.RateLimits,
		func(_ *flow.Ctx, k LimitSlot, limits []ir.RateLimit, emit func(ResourceKey, *envoy.Resource)) {
			// Policies have been checked: nothing of theirs can't be expressed.
			if r, err := envoy.LimitFilter(k.Slot, limits); err == nil {
				emit(ResourceKey{k.Gateway, r.Name}, r)
			}
		}))
}

// count gives a host how its requests are counted, by the RateLimitPolicies on the paths to the
// rules of its entries, whose attachments are in the same order.
func (p *Pipeline) count(c *flow.Ctx, in *translate.HostInput, attached []topology.AttachmentKey) {
	if !p.counted(c, attached) {
		return
	}
	l := leveling[ir.RateLimits]{
		says: make([]func(rule string) *ir.RateLimits, len(attached)), inherited: make([]*ir.RateLimits, len(attached)),
		equal: (*ir.RateLimits).Equal,
		open:  func(l *ir.RateLimits) bool { return len(l.Counted) == 0 },
		set:   func(f *ir.Filters, l *ir.RateLimits) { f.RateLimits = l },
	}
	for i, at := range attached {
		l.inherited[i], _ = flow.Get(c, p.inheritedLimits(at.Listener), at.Listener)
		if own, ok := flow.Get(c, p.routeLimits, at); ok {
			l.says[i] = own.on
		}
	}
	l.put(in)
}

// counted reports whether any policy says how requests for some routes are counted.
func (p *Pipeline) counted(c *flow.Ctx, attached []topology.AttachmentKey) bool {
	for i := range attached {
		if _, ok := flow.Get(c, p.routeLimits, attached[i]); ok {
			return true
		}
		if _, ok := flow.Get(c, p.inheritedLimits(attached[i].Listener), attached[i].Listener); ok {
			return true
		}
	}
	return false
}

// inheritedLimits is the table that has what routes of a listener inherit.
func (p *Pipeline) inheritedLimits(at topology.ListenerKey) flow.Table[topology.ListenerKey, *ir.RateLimits] {
	return topology.TableOf[*ir.RateLimits](at, p.listenerLimits, p.setListenerLimits)
}

// limitedBy reports whether a filter of a Gateway has limits of a policy.
func (p *Pipeline) limitedBy(c *flow.Ctx, gateway object.Name, filter string, policy object.Name) bool {
	for slot := range envoy.RateLimitSlots {
		if envoy.RateLimitFilter(slot) != filter {
			continue
		}
		for k := range flow.Select(c, p.limitsBySlot, LimitSlot{gateway, slot}).All() {
			if k.Policy == policy {
				return true
			}
		}
	}
	return false
}

// notCounting says why nobody counts for all proxies of a Gateway together what a policy limits
// so; empty where somebody does, and where nobody is to. Where nobody provisions fleets, nobody
// knows.
func (p *Pipeline) notCounting(c *flow.Ctx, node *limits.Policy, gateway object.Name) string {
	if !p.Options.Topology.Provisioned || p.Options.Mode == features.Unmanaged || !node.Shared() {
		return ""
	}
	state, _ := flow.Get(c, p.fleetStates, gateway)
	if state.Counting {
		return ""
	}
	return condition.NotCounting(gateway.String(), cmp.Or(p.redisLacks(c, gateway), state.NotCounting))
}
