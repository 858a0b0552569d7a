package translate

import (
	"math"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// PodEndpoints are the endpoints of an InferencePool: each port of each Pod. Those of Pods that are about to end are used
// while there are no others.
func PodEndpoints(ports []int32, pods []*topology.Pod) []ir.Endpoint {
	var ready, draining []ir.Endpoint
	for _, p := range pods {
		for _, port := range ports {
			if port < 1 || port > math.MaxUint16 {
				continue
			}
			e := ir.Endpoint{Address: normal(p.Address), Port: uint16(port), Draining: p.Draining}
			if p.Draining {
				draining = append(draining, e)
			} else {
				ready = append(ready, e)
			}
		}
	}
	if len(ready) == 0 {
		ready = draining
	}
	return distinct(ready)
}
