package pipeline

import (
	"reflect"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// declareKept declares what is to outlive the controller.
func (p *Pipeline) declareKept() {
	p.Kept = flow.Map("kept-settings", p.Graph.Gateways,
		func(c *flow.Ctx, name object.Name, gw *topology.Gateway, emit func(object.Name, *parameters.Kept)) {
			settings, allow := gw.Parameters, gw.Allow
			fleet, class := gw.OnSharedFleet()
			switch {
			case gw.Frozen || p.Graph.HasParameters(gw) && !gw.Served():
				last, ok := p.Graph.KeptOf(c, gw.Object)
				if !ok {
					return
				}
				settings, allow, fleet, class = last.Settings, last.Allow, last.Fleet, ""
				if !fleet.IsZero() {
					class = last.Class
				}
			case !p.Graph.HasParameters(gw):
				return
			}
			emit(name, &parameters.Kept{UID: gw.Object.UID, Settings: &v1alpha1.Settings{
				Client: settings.Client, AccessLog: settings.AccessLog, Tracing: settings.Tracing,
			}, Allow: allow, Fleet: fleet, Class: class})
		}, flow.Equal(func(a, b *parameters.Kept) bool { return reflect.DeepEqual(a, b) }))
	flow.Watch(p.Kept)
}

// Seed takes in what an earlier controller has kept, before the first transaction
// with objects.
func (p *Pipeline) Seed(all map[object.Name]*parameters.Kept) {
	p.Engine.Update(func(tx *flow.Tx) {
		for name, k := range all {
			p.Inputs.Kept.Set(tx, name, *k)
		}
	})
}
