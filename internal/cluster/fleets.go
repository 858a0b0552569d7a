package cluster

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// fleets knows which Gateways are to have a fleet, for those who ask at any time.
type fleets struct {
	mu sync.Mutex
	of map[object.Name]fleet
}

type fleet struct {
	class  string
	limits bool // requests are counted for its Gateway, or nobody knows
}

func (f *fleets) update(changes []flow.Change[object.Name, *infra.Gateway]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[object.Name]fleet{}
	}
	for _, ch := range changes {
		if !ch.Has || len(ch.New.Ports) == 0 && !ch.New.Held {
			delete(f.of, ch.Key)
		} else {
			f.of[ch.Key] = fleet{ch.New.Class, ch.New.Limits || ch.New.Held} // of one that is held nothing is known
		}
	}
}

// serviceAccount returns the name of that which the proxies of a Gateway run under.
func (f *fleets) serviceAccount(gateway object.Name) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of, ok := f.of[gateway]
	return infra.Name(gateway, of.class), ok
}

// limitsAccount returns the name of that which what counts requests for a Gateway runs under;
// empty where nothing is to.
func (f *fleets) limitsAccount(gateway object.Name) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.of[gateway]
	if !of.limits {
		return ""
	}
	return infra.LimitsName(gateway, of.class)
}

// isFormer reports whether a ServiceAccount is of a fleet that a Gateway had under
// another class, and has not left yet: it is there still. What it is, is for the API
// server to say, so that it is known after a restart and to every replica.
func (p *provisioned) isFormer(ctx context.Context, gateway object.Name, serviceAccount string) (bool, error) {
	live := &corev1.ServiceAccount{}
	err := p.cluster.direct.Get(ctx, client.ObjectKey{Namespace: gateway.Namespace, Name: serviceAccount}, live)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	of, ok := infra.OfFleet(live, p.cluster.config.ControllerName)
	return ok && of == gateway, nil
}
