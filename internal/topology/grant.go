package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// grant is a pair that a ReferenceGrant permits: from all objects of a kind in a
// namespace, to an object or all objects of a kind in the grant's namespace.
type grant struct {
	from          object.Kind
	fromNamespace string
	to            object.Kind
	toNamespace   string
	toName        string // empty for all
}

// declareGrants lists the pairs that are permitted. A second grant for a pair
// changes nothing.
func declareGrants(in *Inputs) flow.Table[grant, struct{}] {
	return flow.Keys("topology-grants",
		func(k object.Name, o *gwv1.ReferenceGrant, yield func(grant)) {
			for _, from := range o.Spec.From {
				for _, to := range o.Spec.To {
					pair := grant{
						from: object.KindOf(string(from.Group), string(from.Kind)), fromNamespace: string(from.Namespace),
						to: object.KindOf(string(to.Group), string(to.Kind)), toNamespace: k.Namespace,
					}
					if to.Name != nil {
						pair.toName = string(*to.Name)
					}
					yield(pair)
				}
			}
		}, in.Grants)
}

// permitted reports whether objects of a kind in a namespace may refer to an object.
func (g *Graph) permitted(c *flow.Ctx, from object.Kind, fromNamespace string, to object.Key) bool {
	if fromNamespace == to.Namespace {
		return true
	}
	pair := grant{from: from, fromNamespace: fromNamespace, to: to.Kind, toNamespace: to.Namespace}
	if _, ok := flow.Get(c, g.grants, pair); ok {
		return true
	}
	pair.toName = to.Name.Name
	_, ok := flow.Get(c, g.grants, pair)
	return ok
}
