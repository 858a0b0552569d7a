package pipeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
)

// packing is a route of a Gateway that tells a service that it may compress answers, and a policy
// by which these are to say what they have cost.
type packing struct {
	Gateway, Policy object.Name
	Route           object.Key
}

func (k packing) String() string {
	return k.Gateway.String() + ": " + k.Policy.String() + " on " + k.Route.String()
}

func (k packing) compare(o packing) int {
	return cmp.Or(k.Gateway.Compare(o.Gateway), k.Policy.Compare(o.Policy), k.Route.Compare(o.Route))
}

// policyAt is a policy on a Gateway.
type policyAt struct{ Gateway, Policy object.Name }

func (k policyAt) String() string { return k.Gateway.String() + ": " + k.Policy.String() }

// declarePacked declares for which routes limits can't read what answers have cost.
func (p *Pipeline) declarePacked() {
	all := flow.Keys("packed-answers", func(k ir.HostKey, h *ir.Host, yield func(packing)) {
		for _, r := range h.Rules {
			l := r.Filters.RateLimits
			if l == nil && h.Filters != nil {
				l = h.Filters.RateLimits
			}
			if l == nil || !packs(r) {
				continue
			}
			for i := range l.Counted {
				if g := l.Counted[i].Global; g != nil && len(g.Tokens) > 0 {
					yield(packing{k.Gateway(), l.Counted[i].Key.Policy, r.Source.Route()})
				}
			}
		}
	}, p.Hosts)
	p.packed = flow.NewIndex(all, func(k packing, _ struct{}, yield func(policyAt)) { yield(policyAt{k.Gateway, k.Policy}) }, packing.compare)
}

// packs reports whether a rule has the service told that answers may be compressed.
func packs(r *ir.Rule) bool {
	return asksPacked(r.Filters.RequestHeaders) ||
		slices.ContainsFunc(r.Backends, func(b ir.WeightedBackend) bool { return asksPacked(b.Filters.RequestHeaders) })
}

func asksPacked(c *ir.HeaderChanges) bool {
	return c != nil && slices.ContainsFunc(slices.Concat(c.Set, c.Add), func(h ir.Header) bool {
		return strings.EqualFold(h.Name, "accept-encoding") && !strings.EqualFold(h.Value, "identity")
	})
}

// packedNotes is what to say of it to the reader of a policy; none where nothing is packed.
func (p *Pipeline) packedNotes(c *flow.Ctx, n *limits.Policy, gateway object.Name) []string {
	reader := p.Options.Topology.Reader(n.Name.Namespace)
	var routes []string
	for k := range flow.Select(c, p.packed, policyAt{gateway, n.Name}).All() {
		if name := reader.Object(k.Route.Kind.Name(), k.Route.Namespace, k.Route.Name.Name); !slices.Contains(routes, name) {
			routes = append(routes, name)
		}
	}
	if len(routes) == 0 {
		return nil
	}
	return []string{condition.NotePackedAnswers(routes)}
}
