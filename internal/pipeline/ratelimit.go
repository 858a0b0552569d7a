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

// declareRateLimits declares which limits are in force where, and which filter has each.
func (p *Pipeline) declareRateLimits() {
	p.limits = inForce[ir.RateLimits]{
		equal: (*ir.RateLimits).Equal,
		open:  func(l *ir.RateLimits) bool { return len(l.Counted) == 0 },
		set:   func(f *ir.Filters, l *ir.RateLimits) { f.RateLimits = l },
	}
	declareInForce(&p.limits, "limits", p.Graph.RateLimits,
		func(_ *flow.Ctx, _ topology.ListenerKey, e *limits.Effective) *ir.RateLimits {
			return limits.InForce(e)
		})

	local := keysInForce(p, "limits", func(gateway object.Name, l *ir.RateLimits, yield func(limitKey)) {
		for i := range l.Counted {
			if l.Counted[i].Global == nil {
				yield(limitKey{gateway, l.Counted[i].Key})
			}
		}
	})
	p.SharedLimits = keysInForce(p, "shared-limits", func(gateway object.Name, l *ir.RateLimits, yield func(object.Name)) {
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

// keysInForce declares the keys of limits that are in force somewhere: on listeners, or for routes.
func keysInForce[K comparable](p *Pipeline, name string, of func(gateway object.Name, l *ir.RateLimits, yield func(K))) *flow.Derived[K, struct{}] {
	some := func(gateway object.Name, l *ir.RateLimits, yield func(K)) {
		if l != nil {
			of(gateway, l, yield)
		}
	}
	ofListeners := flow.Keys(name+"-of-listeners",
		func(k topology.ListenerKey, l *ir.RateLimits, yield func(K)) { some(k.Fleet(), l, yield) },
		p.limits.listeners, p.limits.setListeners)
	ofRoutes := flow.Keys(name+"-of-routes",
		func(k topology.AttachmentKey, r *routeInForce[ir.RateLimits], yield func(K)) {
			some(k.Listener.Fleet(), r.all, yield)
			for _, l := range r.rules {
				some(k.Listener.Fleet(), l, yield)
			}
		}, p.limits.routes)
	return flow.Keys(name, func(k K, _ struct{}, yield func(K)) { yield(k) }, ofListeners, ofRoutes)
}

// declareLimitFilters declares what proxies are sent of limits.
func (p *Pipeline) declareLimitFilters() {
	p.LimitFilters = carry(p, "limit-filters", flow.Map("plain-limit-filters", p.RateLimits,
		func(c *flow.Ctx, k LimitSlot, limits []ir.RateLimit, emit func(ResourceKey, *envoy.Resource)) {
			if gw, ok := flow.Get(c, p.Graph.Fleets, k.Gateway); !ok || !gw.Served() {
				return // it has no proxies
			}
			// Policies have been checked: nothing of theirs can't be expressed.
			if r, err := envoy.LimitFilter(k.Slot, limits); err == nil {
				emit(ResourceKey{k.Gateway, r.Name}, r)
			}
		}))
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
