package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
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

// brokenGrant is where a ReferenceGrant with a mistake is.
type brokenGrant struct {
	grant object.Key
	at    string // file:line
}

// declareBrokenGrants finds the first ReferenceGrant of a namespace that files have with a
// mistake; nil where there are no files, or whoever reads a message may not know of all objects.
func (g *Graph) declareBrokenGrants() flow.Table[string, brokenGrant] {
	if g.in.Broken == nil || !g.options.AnyName {
		return nil
	}
	byNamespace := flow.NewIndex(g.in.Broken, func(k object.Key, _ string, yield func(string)) {
		if k.Kind == kind.ReferenceGrant {
			yield(k.Namespace)
		}
	}, object.Key.Compare)
	return flow.Group("broken-grants", byNamespace,
		func(_ *flow.Ctx, _ string, grants flow.Members[object.Key, string]) (brokenGrant, bool) {
			for k, at := range grants.All() {
				return brokenGrant{k, at}, true
			}
			return brokenGrant{}, false
		}, flow.Equal(flow.Same[brokenGrant]))
}

// grantFor is what would permit a reference.
func (g *Graph) grantFor(c *flow.Ctx, from, to object.Key) condition.Grant {
	grant := condition.Grant{
		FromGroup: from.Kind.Group(), FromKind: from.Kind.Name(), From: from.Namespace,
		Group: to.Kind.Group(), Kind: to.Kind.Name(), Namespace: to.Namespace, Name: to.Name.Name,
		NotRead: !g.reads(c, to.Namespace),
	}
	if g.brokenGrants != nil {
		if b, ok := flow.Get(c, g.brokenGrants, to.Namespace); ok {
			grant.Broken, grant.BrokenAt = b.grant.Name.String(), b.at
		}
	}
	return grant
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
