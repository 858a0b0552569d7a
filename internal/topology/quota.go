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

// setTenant is a namespace with ListenerSets of a Gateway.
type setTenant struct {
	gateway   object.Name
	namespace string
}

func (t setTenant) String() string { return t.namespace + " at " + t.gateway.String() }

// declareSetsOverQuota declares the Accepted conditions of the ListenerSets with which
// namespaces would have more listeners of a Gateway than its class allows. The older of
// two sets goes first, so that a new one takes nothing from those that serve.
func (g *Graph) declareSetsOverQuota() flow.Table[object.Name, metav1.Condition] {
	byTenant := flow.NewIndex(g.in.ListenerSets,
		func(_ object.Name, o *gwv1.ListenerSet, yield func(setTenant)) {
			yield(setTenant{ParentOfSet(o), o.Namespace})
		}, object.Name.Compare)
	over := flow.Group("topology-set-quotas", byTenant,
		func(c *flow.Ctx, t setTenant, members flow.Members[object.Name, *gwv1.ListenerSet]) (map[object.Name]metav1.Condition, bool) {
			p := g.parametersOf(c, t.gateway)
			if p.allow == nil || p.allow.Quotas == nil || p.allow.Quotas.Listeners == nil {
				return nil, false
			}
			out := setsOverQuota(t, p.class, int(*p.allow.Quotas.Listeners), members)
			return out, len(out) > 0
		})
	return flow.Map("topology-sets-over-quota", over,
		func(_ *flow.Ctx, _ setTenant, over map[object.Name]metav1.Condition, emit func(object.Name, metav1.Condition)) {
			for name, why := range over {
				emit(name, why)
			}
		}, flow.Equal(flow.Same[metav1.Condition]))
}

func setsOverQuota(t setTenant, class string, most int, members flow.Members[object.Name, *gwv1.ListenerSet]) map[object.Name]metav1.Condition {
	var sets []*gwv1.ListenerSet
	for _, o := range members.All() {
		sets = append(sets, o)
	}
	slices.SortFunc(sets, func(a, b *gwv1.ListenerSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	over, served := map[object.Name]metav1.Condition{}, 0
	for _, o := range sets {
		if sum := served + len(o.Spec.Listeners); sum > most {
			over[object.Name{Namespace: o.Namespace, Name: o.Name}] = condition.ListenerSetOverQuota(t.gateway.String(), t.namespace, class, sum, most)
		} else {
			served = sum
		}
	}
	return over
}
