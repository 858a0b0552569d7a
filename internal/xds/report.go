package xds

import (
	"sync"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// reports calls Options.OnState, for one Gateway at a time, from a goroutine that runs
// as long as there is something to report.
type reports struct {
	onState func(gateway object.Name, state State)
	// state returns the state of a Gateway's present record: proxies that connect may
	// find another record than those that disconnect have used.
	state func(gateway object.Name) State

	mu       sync.Mutex
	pending  map[object.Name]reportMode // by Gateway
	reported map[object.Name]State      // the last one of each Gateway; none for an empty one
	running  bool
	closed   bool
	done     sync.WaitGroup
}

// reportMode says when a Gateway's state is reported.
type reportMode int

const (
	ifChanged reportMode = iota // if it differs from the last one that was reported
	always
)

// add reports a Gateway's state if it has changed. It never blocks.
func (r *reports) add(g *gateway) { r.enqueue(g.name, ifChanged) }

// addAlways reports a Gateway's state whether it has changed or not: what was reported
// before was of another Gateway of this name.
func (r *reports) addAlways(g *gateway) { r.enqueue(g.name, always) }

func (r *reports) enqueue(gateway object.Name, m reportMode) {
	if r.onState == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if r.pending == nil {
		r.pending, r.reported = map[object.Name]reportMode{}, map[object.Name]State{}
	}
	r.pending[gateway] = max(r.pending[gateway], m)
	if !r.running {
		r.running = true
		r.done.Go(r.run)
	}
}

func (r *reports) run() {
	for {
		gateway, m, ok := r.next()
		if !ok {
			return
		}
		if st := r.state(gateway); r.isDue(gateway, m, st) {
			r.onState(gateway, st)
		}
	}
}

func (r *reports) next() (gateway object.Name, m reportMode, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for gateway, m := range r.pending {
		delete(r.pending, gateway)
		if !r.closed {
			return gateway, m, true
		}
	}
	r.running = false
	return object.Name{}, ifChanged, false
}

// isDue reports whether a state has to be reported, and remembers it.
func (r *reports) isDue(gateway object.Name, m reportMode, st State) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.reported[gateway]
	if st.equal(&State{}) {
		delete(r.reported, gateway)
	} else {
		r.reported[gateway] = st
	}
	return m == always || !st.equal(&last)
}

func (r *reports) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.done.Wait()
}
