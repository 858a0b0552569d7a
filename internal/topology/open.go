package topology

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Open reports whether AuthPolicies let everybody pass by a rule of a route, on all listeners
// that the route is attached to. The name of the rule is nil for one without.
func (g *Graph) Open(c *flow.Ctx, route object.Key, rule *gwv1.SectionName) bool {
	for _, p := range g.Parents(c, route) {
		for _, at := range p.attached {
			a := g.Access(c, at.Key.Listener.Gateway(), g.Auth.On(c, at.Key, string(valueOr(rule, ""))))
			if a != nil && (a.Authenticated || len(a.Conditions) > 0) {
				return false
			}
		}
	}
	return true
}
