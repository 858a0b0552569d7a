package control

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// fleets knows which Gateways are to have a fleet, for those who ask at any time.
type fleets struct {
	mu      sync.Mutex
	classes map[object.Name]string
}

func (f *fleets) update(changes map[object.Name]*infra.Gateway) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.classes == nil {
		f.classes = map[object.Name]string{}
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
func (f *fleets) serviceAccount(gateway object.Name) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	class, ok := f.classes[gateway]
	return infra.Name(gateway, class), ok
}

// isFormer reports whether a ServiceAccount is of a fleet that a Gateway had under
// another class, and has not left yet: it is there still. What it is, is for the API
// server to say, so that it is known after a restart and to every replica.
func (c *Cluster) isFormer(ctx context.Context, gateway object.Name, serviceAccount string) (bool, error) {
	live := &corev1.ServiceAccount{}
	err := c.direct.Get(ctx, client.ObjectKey{Namespace: gateway.Namespace, Name: serviceAccount}, live)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	of, ok := infra.OfFleet(live, c.config.ControllerName)
	return ok && of == gateway, nil
}
