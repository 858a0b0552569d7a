package topology

import (
	"slices"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// Open reports whether AuthPolicies let everybody pass by a rule of a route, on all listeners
// that the route is attached to. The name of the rule is nil for one without.
func (g *Graph) Open(c *flow.Ctx, route object.Key, rule *gwv1.SectionName) bool {
	for _, p := range g.Parents(c, route) {
		for _, at := range p.attached {
			a := g.Access(c, at.Key.Listener.Fleet(), g.Auth.On(c, at.Key, string(valueOr(rule, ""))))
			if a != nil && (a.Authenticated || len(a.Conditions) > 0) {
				return false
			}
		}
	}
	return true
}

// InForce returns the kinds of inherited policies of which something is in force for a route, or for a rule of it.
func (g *Graph) InForce(c *flow.Ctx, r *Route) (kinds []object.Kind) {
	names := append(RuleNames(r.Object), "")
	has := func(of object.Kind, on func(at AttachmentKey, rule string) bool) {
		for _, p := range g.Parents(c, r.Key) {
			for _, at := range p.attached {
				if slices.ContainsFunc(names, func(rule string) bool { return on(at.Key, rule) }) {
					kinds = append(kinds, of)
					return
				}
			}
		}
	}
	has(kind.AuthPolicy, func(at AttachmentKey, rule string) bool { return anyRule(g.Auth.On(c, at, rule)) })
	has(kind.RateLimitPolicy, func(at AttachmentKey, rule string) bool { return anyRule(g.RateLimits.On(c, at, rule)) })
	has(kind.TrafficPolicy, func(at AttachmentKey, rule string) bool {
		return anyRule(g.Traffic.On(c, at, rule)) || slices.ContainsFunc(r.PolicyTargets, func(to object.Key) bool {
			e, _ := flow.Get(c, g.Traffic.Services, ServicePlace{at, rule, to})
			return anyRule(e)
		})
	})
	return kinds
}

func anyRule[R policy.Asks[R]](e *policy.Effective[R]) bool { return e != nil && len(e.Rules) > 0 }
