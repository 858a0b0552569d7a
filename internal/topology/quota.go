package topology

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// tenant is a namespace with ListenerSets of a Gateway, or with Gateways on a shared fleet.
type tenant struct {
	at        object.Name // the Gateway or the fleet
	namespace string
}

func (t tenant) String() string { return t.namespace + " at " + t.at.String() }

// listenersOf are how many listeners an object of a tenant has, and how many its class allows the tenant.
type listenersOf struct {
	tenant
	created metav1.Time
	count   int
	most    int32
	class   string
}

// declareSetsOverQuota declares the Accepted conditions of the ListenerSets with which
// namespaces would have more listeners of a Gateway than its class allows. The older of
// two sets goes first, so that a new one takes nothing from those that serve.
func (g *Graph) declareSetsOverQuota() flow.Table[object.Name, metav1.Condition] {
	listeners := flow.Map("topology-set-shares", g.in.ListenerSets,
		func(c *flow.Ctx, name object.Name, o *gwv1.ListenerSet, emit func(object.Name, listenersOf)) {
			gateway := ParentOfSet(o)
			p := g.parametersOf(c, gateway)
			if most := p.maxListeners(); most != nil {
				emit(name, listenersOf{tenant{gateway, o.Namespace}, o.CreationTimestamp, len(o.Spec.Listeners), *most, p.class})
			}
		}, flow.Equal(flow.Same[listenersOf]))
	return declareOverQuota("topology-sets-over-quota", listeners, func(o listenersOf, sum int) metav1.Condition {
		return condition.ListenerSetOverQuota(o.at.String(), o.namespace, o.class, sum, int(o.most))
	})
}

// declareMembersOverQuota does the same for Gateways on shared fleets.
func (g *Graph) declareMembersOverQuota() flow.Table[object.Name, metav1.Condition] {
	listeners := flow.Map("topology-member-shares", g.owned,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(object.Name, listenersOf)) {
			fleet, p := g.FleetOf(c, name), g.parametersOf(c, name)
			if most := p.maxListeners(); fleet != name && most != nil {
				emit(name, listenersOf{tenant{fleet, gw.Namespace}, gw.CreationTimestamp, len(gw.Spec.Listeners), *most, p.class})
			}
		}, flow.Equal(flow.Same[listenersOf]))
	return declareOverQuota("topology-members-over-quota", listeners, func(o listenersOf, sum int) metav1.Condition {
		return condition.GatewayOverQuota(o.namespace, o.class, sum, int(o.most))
	})
}

// maxListeners is how many listeners a namespace may have; nil for any number.
func (p *gatewayParameters) maxListeners() *int32 {
	if p.allow == nil || p.allow.Quotas == nil {
		return nil
	}
	return p.allow.Quotas.Listeners
}

// declareOverQuota declares why objects are refused with which tenants would have too many listeners.
func declareOverQuota(
	table string, listeners flow.Table[object.Name, listenersOf], why func(o listenersOf, sum int) metav1.Condition,
) flow.Table[object.Name, metav1.Condition] {
	byTenant := flow.NewIndex(listeners,
		func(_ object.Name, o listenersOf, yield func(tenant)) { yield(o.tenant) }, object.Name.Compare)
	over := flow.Group(table+"-by-tenants", byTenant,
		func(_ *flow.Ctx, _ tenant, members flow.Members[object.Name, listenersOf]) (map[object.Name]metav1.Condition, bool) {
			out := overQuota(members, why)
			return out, len(out) > 0
		})
	return flow.Map(table, over,
		func(_ *flow.Ctx, _ tenant, over map[object.Name]metav1.Condition, emit func(object.Name, metav1.Condition)) {
			for name, why := range over {
				emit(name, why)
			}
		}, flow.Equal(flow.Same[metav1.Condition]))
}

// overQuota returns the objects of a tenant that are too much, each with why: the listeners that there would be with it.
func overQuota(members flow.Members[object.Name, listenersOf], why func(o listenersOf, sum int) metav1.Condition) map[object.Name]metav1.Condition {
	type share struct {
		name object.Name
		listenersOf
	}
	shares := make([]share, 0, members.Len())
	for name, o := range members.All() {
		shares = append(shares, share{name, o})
	}
	slices.SortFunc(shares, func(a, b share) int {
		return cmp.Or(a.created.Compare(b.created.Time), cmp.Compare(a.name.Name, b.name.Name))
	})
	over, served := map[object.Name]metav1.Condition{}, 0
	for _, o := range shares {
		if sum := served + o.count; sum > int(o.most) {
			over[o.name] = why(o.listenersOf, sum)
		} else {
			served = sum
		}
	}
	return over
}
