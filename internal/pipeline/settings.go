package pipeline

import (
	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/parameters"
)

// keep remembers the classes and settings of Gateways that are served as they ask for,
// for the day when their parameters can't be used or their class does not exist. It lags
// one transaction behind: nobody needs it before.
func (p *Pipeline) keep(tx *flow.Tx) {
	for _, ch := range p.changedGateways {
		switch {
		case !ch.Has:
			p.Inputs.Kept.Delete(tx, ch.Key)
		case ch.New.Served() && !ch.New.Frozen:
			fleet, _ := ch.New.OnSharedFleet()
			p.Inputs.Kept.Set(tx, ch.Key, parameters.Kept{UID: ch.New.Object.UID, Class: ch.New.Class, Settings: ch.New.Parameters, Allow: ch.New.Allow, Fleet: fleet})
		}
	}
	p.changedGateways = nil
}

// SettingsOf returns the settings of a Gateway.
func (p *Pipeline) SettingsOf(gateway object.Name) *v1alpha1.Settings {
	out := &v1alpha1.Settings{}
	p.Engine.View(func(c *flow.Ctx) {
		if gw, ok := flow.Get(c, p.Graph.Fleets, gateway); ok {
			out = gw.Parameters
		}
	})
	return out
}
