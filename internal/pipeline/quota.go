package pipeline

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// Tenant is a namespace with routes on a Gateway whose class has quotas.
type Tenant struct {
	Gateway   object.Name
	Namespace string
}

func (t Tenant) String() string { return t.Namespace + " at " + t.Gateway.String() }

// Usage is what a tenant's routes have, and as much of it as is served.
type Usage struct{ Hosts, Rules, ServedHosts, ServedRules int }

// Tenants yields what each tenant has.
func (p *Pipeline) Tenants(yield func(Tenant, Usage)) {
	p.Engine.View(func(c *flow.Ctx) {
		for t, u := range flow.All(c, p.tenants) {
			yield(t, u.Usage)
		}
	})
}

// quota is what each namespace may have; 0 for as much as it likes.
type quota struct {
	hosts, rules int
	class        string
}

// quotaShare is what a route has on a listener.
type quotaShare struct {
	hosts, rules int
	created      time.Time
}

// declareQuotas declares the routes with which namespaces have more than their share of a
// Gateway. Gateways without quotas cost a look for each attachment, and nothing more.
//
// Such a route answers errors, lest requests that it was to guard pass by an older one of
// the same namespace. What is closed so is bounded too, or it would cost what the quota is
// to save: beyond as much again, routes are not there at all.
func (p *Pipeline) declareQuotas() {
	quotas := flow.Map("quotas", p.Graph.Fleets,
		func(_ *flow.Ctx, name object.Name, gw *topology.Gateway, emit func(object.Name, quota)) {
			if gw.Allow == nil || gw.Allow.Quotas == nil {
				return
			}
			q := gw.Allow.Quotas
			if q.Hosts != nil || q.Rules != nil {
				emit(name, quota{int(ptr.Deref(q.Hosts, 0)), int(ptr.Deref(q.Rules, 0)), gw.Class})
			}
		}, flow.Equal(flow.Same[quota]))
	shares := flow.Map("quota-shares", p.Graph.Attachments,
		func(c *flow.Ctx, k topology.AttachmentKey, a *topology.Attachment, emit func(topology.AttachmentKey, quotaShare)) {
			if _, ok := flow.Get(c, quotas, k.Listener.Fleet()); !ok {
				return
			}
			if _, ok := translate.RouteTable(k.Listener.Fleet(), a.Frontend); !ok {
				return // each such route has a listener of its own
			}
			if rules, ok := flow.Get(c, p.rules, k.Route); ok {
				emit(k, quotaShare{len(a.Hosts), len(a.Hosts) * len(rules.Rules.Rules), rules.created})
			}
		}, flow.Equal(flow.Same[quotaShare]))
	byTenant := flow.NewIndex(shares,
		func(k topology.AttachmentKey, _ quotaShare, yield func(Tenant)) {
			yield(Tenant{k.Listener.Fleet(), k.Route.Namespace})
		},
		topology.AttachmentKey.Compare)
	p.tenants = flow.Group("quota-usage", byTenant,
		func(c *flow.Ctx, t Tenant, members flow.Members[topology.AttachmentKey, quotaShare]) (tenantUsage, bool) {
			q, ok := flow.Get(c, quotas, t.Gateway)
			return q.share(t, members), ok
		})
	p.overQuota = flow.Map("routes-over-quota", p.tenants,
		func(_ *flow.Ctx, _ Tenant, u tenantUsage, emit func(routeAt, overrun)) {
			for k, o := range u.over {
				emit(k, o)
			}
		}, flow.Equal(flow.Same[overrun]))
	p.crowded = flow.Keys("tenants-over-quota",
		func(k routeAt, _ overrun, yield func(Tenant)) { yield(Tenant{k.Gateway, k.Route.Namespace}) }, p.overQuota)
}

// tenantUsage is a tenant's usage, with the routes that are too much.
type tenantUsage struct {
	Usage
	over map[routeAt]overrun
}

// overrun is why the proxies of a Gateway don't serve a route as it is written.
type overrun struct {
	why  metav1.Condition
	gone bool // it doesn't even answer errors
}

// share divides a quota among the routes of a tenant, the oldest first.
func (q quota) share(t Tenant, members flow.Members[topology.AttachmentKey, quotaShare]) tenantUsage {
	sums := map[object.Key]quotaShare{}
	for k, s := range members.All() {
		sum := sums[k.Route]
		sums[k.Route] = quotaShare{sum.hosts + s.hosts, sum.rules + s.rules, s.created}
	}
	routes := slices.SortedFunc(maps.Keys(sums), func(a, b object.Key) int {
		return cmp.Or(sums[a].created.Compare(sums[b].created), a.Name.Compare(b.Name), a.Compare(b))
	})
	u := tenantUsage{over: map[routeAt]overrun{}}
	closed := quotaShare{}
	for _, k := range routes {
		s := sums[k]
		u.Hosts += s.hosts
		u.Rules += s.rules
		hosts, rules := u.ServedHosts+s.hosts, u.ServedRules+s.rules
		if q.has(hosts, rules) {
			u.ServedHosts, u.ServedRules = hosts, rules
			continue
		}
		o := overrun{why: condition.RouteOverQuota(condition.Overrun{
			Gateway: t.Gateway.String(), Namespace: t.Namespace, Class: q.class,
			Hosts: hosts, MaxHosts: q.hosts, Rules: rules, MaxRules: q.rules,
		})}
		if o.gone = !q.has(closed.hosts+s.hosts, closed.rules+s.rules); !o.gone {
			closed.hosts += s.hosts
			closed.rules += s.rules
		}
		u.over[routeAt{t.Gateway, k}] = o
	}
	return u
}

// has reports whether so much is within the quota.
func (q quota) has(hosts, rules int) bool {
	return (q.hosts == 0 || hosts <= q.hosts) && (q.rules == 0 || rules <= q.rules)
}

// withinQuota returns the rules of a route that its namespace may have at a Gateway, and
// false where the route isn't there at all.
func (p *Pipeline) withinQuota(c *flow.Ctx, gateway object.Name, route object.Key, rules []*ir.Rule) ([]*ir.Rule, bool) {
	if _, crowded := flow.Get(c, p.crowded, Tenant{gateway, route.Namespace}); !crowded {
		return rules, true
	}
	o, over := flow.Get(c, p.overQuota, routeAt{gateway, route})
	if !over || o.gone {
		return rules, !over
	}
	closed := make([]*ir.Rule, len(rules))
	for i, r := range rules {
		closed[i] = envoy.Closed(r)
	}
	return closed, true
}
