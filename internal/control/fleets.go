package control

import (
	"sync"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// fleets knows which Gateways are to have a fleet, for those who ask at any time.
type fleets struct {
	mu      sync.Mutex
	classes map[ir.Name]string
}

func (f *fleets) update(changes map[ir.Name]*infra.Gateway) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.classes == nil {
		f.classes = map[ir.Name]string{}
	}
	for name, fleet := range changes {
		if fleet == nil || len(fleet.Ports) == 0 && !fleet.Held {
			delete(f.classes, name)
		} else {
			f.classes[name] = fleet.Class
		}
	}
}

// serviceAccount returns the name of that which the proxies of a Gateway run under.
func (f *fleets) serviceAccount(gateway ir.Name) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	class, ok := f.classes[gateway]
	return infra.Name(gateway, class), ok
}
