package pipeline

import (
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// declareCollectors declares the clusters of those who take a Gateway's telemetry.
func (p *Pipeline) declareCollectors() {
	p.Collectors = flow.Map("collectors", p.Graph.Fleets,
		func(_ *flow.Ctx, k object.Name, gw *topology.Gateway, emit func(ResourceKey, *envoy.Resource)) {
			if !gw.Served() {
				return
			}
			told := translate.Telemetry(k, gw.Parameters)
			seen := map[string]bool{}
			for c := range told.Collectors {
				if name := envoy.CollectorName(c); !seen[name] {
					seen[name] = true
					if resource, err := envoy.Collector(c); err == nil { // its host has been checked
						emit(ResourceKey{k, name}, resource)
					}
				}
			}
		})
}
