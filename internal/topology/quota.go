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

// listenersOf are how many listeners an object of a tenant has.
type listenersOf struct {
	tenant
	created metav1.Time
	count   int
}

// declareSetsOverQuota declares the Accepted conditions of the ListenerSets with which
// namespaces would have more listeners of a Gateway than its class allows. The older of
// two sets goes first, so that a new one takes nothing from those that serve.
func (g *Graph) declareSetsOverQuota() flow.Table[object.Name, metav1.Condition] {
	listeners := flow.Map("topology-set-shares", g.in.ListenerSets,
		func(c *flow.Ctx, name object.Name, o *gwv1.ListenerSet, emit func(object.Name, listenersOf)) {
			if gateway := ParentOfSet(o); g.parametersOf(c, gateway).limitsListeners() {
				emit(name, listenersOf{tenant{gateway, o.Namespace}, o.CreationTimestamp, len(o.Spec.Listeners)})
			}
		}, flow.Equal(flow.Same[listenersOf]))
	return declareOverQuota("topology-sets-over-quota", listeners,
		func(c *flow.Ctx, t tenant, _ object.Name) *gatewayParameters { return g.parametersOf(c, t.at) },
		func(t tenant, class string, sum, most int) metav1.Condition {
			return condition.ListenerSetOverQuota(t.at.String(), t.namespace, class, sum, most)
		})
}

// declareMembersOverQuota does the same for Gateways on shared fleets.
func (g *Graph) declareMembersOverQuota() flow.Table[object.Name, metav1.Condition] {
	listeners := flow.Map("topology-member-shares", g.owned,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(object.Name, listenersOf)) {
			if fleet := g.FleetOf(c, name); fleet != name && g.parametersOf(c, name).limitsListeners() {
				emit(name, listenersOf{tenant{fleet, gw.Namespace}, gw.CreationTimestamp, len(gw.Spec.Listeners)})
			}
		}, flow.Equal(flow.Same[listenersOf]))
	return declareOverQuota("topology-members-over-quota", listeners,
		func(c *flow.Ctx, _ tenant, first object.Name) *gatewayParameters { return g.parametersOf(c, first) },
		func(t tenant, class string, sum, most int) metav1.Condition {
			return condition.GatewayOverQuota(t.namespace, class, sum, most)
		})
}

// limitsListeners reports whether a class bounds how many listeners a namespace has.
func (p *gatewayParameters) limitsListeners() bool {
	return p.allow != nil && p.allow.Quotas != nil && p.allow.Quotas.Listeners != nil
}

// declareOverQuota declares why objects are refused with which tenants would have too many listeners.
func declareOverQuota(
	table string, listeners flow.Table[object.Name, listenersOf],
	parameters func(c *flow.Ctx, t tenant, first object.Name) *gatewayParameters,
	why func(t tenant, class string, sum, most int) metav1.Condition,
) flow.Table[object.Name, metav1.Condition] {
	byTenant := flow.NewIndex(listeners,
		func(_ object.Name, o listenersOf, yield func(tenant)) { yield(o.tenant) }, object.Name.Compare)
	over := flow.Group(table+"-by-tenants", byTenant,
		func(c *flow.Ctx, t tenant, members flow.Members[object.Name, listenersOf]) (map[object.Name]metav1.Condition, bool) {
			first, _ := members.At(0)
			p := parameters(c, t, first)
			if !p.limitsListeners() {
				return nil, false
			}
			most, out := int(*p.allow.Quotas.Listeners), map[object.Name]metav1.Condition{}
			for name, sum := range overQuota(most, members) {
				out[name] = why(t, p.class, sum, most)
			}
			return out, len(out) > 0
		})
	return flow.Map(table, over,
		func(_ *flow.Ctx, _ tenant, over map[object.Name]metav1.Condition, emit func(object.Name, metav1.Condition)) {
			for name, why := range over {
				emit(name, why)
			}
		}, flow.Equal(flow.Same[metav1.Condition]))
}

// overQuota returns the objects that are too much, each with the listeners that there would be with it.
func overQuota(most int, members flow.Members[object.Name, listenersOf]) map[object.Name]int {
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
	over, served := map[object.Name]int{}, 0
	for _, o := range shares {
		if sum := served + o.count; sum > most {
			over[o.name] = sum
		} else {
			served = sum
		}
	}
	return over
}
