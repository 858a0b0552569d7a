package cluster

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// fleets knows which Gateways are to have a fleet, for those who ask at any time.
type fleets struct {
	mu        sync.Mutex
	classes   map[object.Name]string // of all fleets
	made      map[object.Name]string // the classes that their newest fleets were made under
	of        map[object.Name]parts
	unsettled func(gateway object.Name) bool // see pipeline.Unsettled
	places    infra.Places
}

// parts are what of a fleet a Gateway is to have.
type parts struct {
	there  bool // the Gateway is to have one
	limits bool // requests are counted for it
}

// unknown is a fleet of which nothing is known: it may have all that one has.
var unknown = parts{there: true, limits: true}

func (f *fleets) update(c *flow.Commit, p *pipeline.Pipeline) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.classes, f.made, f.of = map[object.Name]string{}, map[object.Name]string{}, map[object.Name]parts{}
	}
	note(f.classes, flow.Changes(c, p.Graph.Fleets), func(gw *topology.Gateway) string { return gw.Class })
	if made := p.Inputs.FleetClasses; made != nil {
		note(f.made, flow.Changes(c, made), func(class string) string { return class })
		note(f.made, flow.Changes(c, p.SharedFleets), func(class string) string { return class })
	}
	note(f.of, flow.Changes(c, p.Infrastructure), func(g *infra.Gateway) parts {
		if g.Frozen {
			return unknown
		}
		return parts{len(g.Ports) > 0, g.Limits}
	})
	f.unsettled = p.Unsettled()
}

// note takes what is to be known of changed entries into a map.
func note[K comparable, V, W any](into map[K]W, changes []flow.Change[K, V], of func(V) W) {
	for _, ch := range changes {
		if ch.Has {
			into[ch.Key] = of(ch.New)
		} else {
			delete(into, ch.Key)
		}
	}
}

// find returns what is known of a Gateway's fleet. What can't be computed takes from no proxy what it goes on with,
// and gives none to a Gateway of which nothing says that it has a fleet.
func (f *fleets) find(gateway object.Name) (class string, of parts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	class, known := f.classes[gateway]
	if f.unsettled == nil || !f.unsettled(gateway) {
		return class, f.of[gateway]
	}
	if !known {
		class, known = f.made[gateway]
	}
	if !known {
		return "", parts{}
	}
	return class, unknown
}

// serviceAccount returns the name of that which the proxies of a Gateway run under.
func (f *fleets) serviceAccount(gateway object.Name) (object.Name, bool) {
	class, of := f.find(gateway)
	return f.places.Name(gateway, class), of.there
}

// limitsAccount returns the name of that which what counts requests for a Gateway runs under;
// zero where nothing is to.
func (f *fleets) limitsAccount(gateway object.Name) object.Name {
	class, of := f.find(gateway)
	if !of.limits {
		return object.Name{}
	}
	return f.places.LimitsName(gateway, class)
}

// isFormer reports whether a ServiceAccount is of a fleet that a Gateway had under
// another class or in another namespace, and has not left yet: it is there still. What it is, is for the API
// server to say, so that it is known after a restart and to every replica.
func (p *provisioned) isFormer(ctx context.Context, gateway, serviceAccount object.Name) (bool, error) {
	if !p.fleets.places.Has(gateway, serviceAccount.Namespace) {
		return false, nil
	}
	live := &corev1.ServiceAccount{}
	err := p.cluster.direct.Get(ctx, client.ObjectKey(serviceAccount), live)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	of, ok := p.fleets.places.OfFleet(live, p.cluster.config.ControllerName)
	return ok && of == gateway, nil
}
