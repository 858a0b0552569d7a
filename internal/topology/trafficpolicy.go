package topology

import (
	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
)

// declareTrafficPolicies declares the nodes of TrafficPolicies.
func (g *Graph) declareTrafficPolicies() flow.Table[object.Name, *traffic.Policy] {
	return flow.Map("topology-traffic-policies", g.in.TrafficPolicies,
		func(c *flow.Ctx, k object.Name, o *v1alpha1.TrafficPolicy, emit func(object.Name, *traffic.Policy)) {
			emit(k, traffic.Read(k, o, g.Find(c), g.configMaps(c)))
		})
}
