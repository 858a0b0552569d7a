package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// grant is a pair that a ReferenceGrant permits: from all objects of a kind in a
// namespace, to an object or all objects of a kind in the grant's namespace.
type grant struct {
	fromGroup, fromKind, fromNamespace string
	toGroup, toKind, toNamespace       string
	toName                             string // empty for all
}

// declareGrants lists the pairs that are permitted. A second grant for a pair wakes
// nobody.
func declareGrants(in *Inputs) flow.Table[grant, struct{}] {
	return flow.Keys("topology-grants",
		func(k ir.Name, o *gwv1.ReferenceGrant, yield func(grant)) {
			for _, from := range o.Spec.From {
				for _, to := range o.Spec.To {
					pair := grant{
						fromGroup: string(from.Group), fromKind: string(from.Kind), fromNamespace: string(from.Namespace),
						toGroup: string(to.Group), toKind: string(to.Kind), toNamespace: k.Namespace,
					}
					if to.Name != nil {
						pair.toName = string(*to.Name)
					}
					yield(pair)
				}
			}
		}, in.Grants)
}

// permitted reports whether Gateway API objects of a kind in a namespace may refer
// to a core object.
func (g *Graph) permitted(c *flow.Ctx, fromKind, fromNamespace, toKind string, to ir.Name) bool {
	if fromNamespace == to.Namespace {
		return true
	}
	pair := grant{
		fromGroup: gwv1.GroupVersion.Group, fromKind: fromKind, fromNamespace: fromNamespace,
		toKind: toKind, toNamespace: to.Namespace,
	}
	if _, ok := flow.Get(c, g.grants, pair); ok {
		return true
	}
	pair.toName = to.Name
	_, ok := flow.Get(c, g.grants, pair)
	return ok
}
