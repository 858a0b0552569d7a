package loop

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// States is what the proxies of each Gateway say, by the replica of the
// controller that they are connected to. This process is the replica "".
type States map[object.Name]map[string]xds.State

// Take notes what a replica has heard and returns what all have.
func (s States) Take(replica string, gateway object.Name, state xds.State) xds.State {
	if s[gateway] == nil {
		s[gateway] = map[string]xds.State{}
	}
	s[gateway][replica] = state
	if state.Silent() {
		s.forget(gateway, replica)
	}
	return s.Merged(gateway)
}

// Drop forgets what a replica has said, and returns the Gateways concerned.
func (s States) Drop(replica string) []object.Name {
	var concerned []object.Name
	for gateway, states := range s {
		if _, ok := states[replica]; ok {
			s.forget(gateway, replica)
			concerned = append(concerned, gateway)
		}
	}
	return concerned
}

func (s States) forget(gateway object.Name, replica string) {
	if delete(s[gateway], replica); len(s[gateway]) == 0 {
		delete(s, gateway)
	}
}

// Merged returns what the proxies of a Gateway say, at whatever replica.
func (s States) Merged(gateway object.Name) xds.State {
	return xds.MergeStates(slices.Collect(maps.Values(s[gateway]))...)
}

// Heard reports whether a proxy of the Gateway has taken a whole configuration.
func (s States) Heard(gateway object.Name) bool {
	for _, state := range s[gateway] {
		if state.Connected > 0 && state.Synced {
			return true
		}
	}
	return false
}
