package topology

import (
	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
)

// declareRateLimitPolicies declares the nodes of RateLimitPolicies.
func (g *Graph) declareRateLimitPolicies() flow.Table[object.Name, *limits.Policy] {
	return flow.Map("topology-rate-limit-policies", g.in.RateLimitPolicies,
		func(c *flow.Ctx, k object.Name, o *v1alpha1.RateLimitPolicy, emit func(object.Name, *limits.Policy)) {
			over, _ := flow.Get(c, g.limitsOver, k.Namespace)
			emit(k, limits.Read(k, o, over, g.Find(c)))
		})
}
