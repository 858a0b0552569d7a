package control

import (
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// proxyStates is what the proxies of each Gateway say, by the replica of the
// controller that they are connected to. This process is the replica "".
type proxyStates map[object.Name]map[string]xds.State

// take notes what a replica has heard and returns what all have.
func (p proxyStates) take(replica string, gateway object.Name, state xds.State) xds.State {
	if p[gateway] == nil {
		p[gateway] = map[string]xds.State{}
	}
	p[gateway][replica] = state
	if state.Silent() {
		p.forget(gateway, replica)
	}
	return p.merged(gateway)
}

// drop forgets what a replica has said, and returns the Gateways concerned.
func (p proxyStates) drop(replica string) []object.Name {
	var concerned []object.Name
	for gateway, states := range p {
		if _, ok := states[replica]; ok {
			p.forget(gateway, replica)
			concerned = append(concerned, gateway)
		}
	}
	return concerned
}

func (p proxyStates) forget(gateway object.Name, replica string) {
	if delete(p[gateway], replica); len(p[gateway]) == 0 {
		delete(p, gateway)
	}
}

func (p proxyStates) merged(gateway object.Name) xds.State {
	return xds.MergeStates(slices.Collect(maps.Values(p[gateway]))...)
}

// heard reports whether a proxy of the Gateway has taken a whole configuration.
func (p proxyStates) heard(gateway object.Name) bool {
	for _, state := range p[gateway] {
		if state.Connected > 0 && state.Synced {
			return true
		}
	}
	return false
}

// patience is how long a leader that has just begun waits for the proxies to
// connect, to it or to other replicas, before it takes their silence for an
// answer: a restart must not turn every Gateway's Programmed off and on.
const patience = 15 * time.Second
