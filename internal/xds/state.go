package xds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// State is what the proxies of a Gateway have made of its configuration.
type State struct {
	Connected int `json:"connected"` // sessions

	// Synced is set once a proxy has answered its first whole configuration, and
	// stays. A resource that was refused doesn't hold it back.
	Synced bool `json:"synced"`

	// Listeners has the version of each listener that a connected proxy has
	// acknowledged; the wanted one, where proxies differ.
	Listeners map[string]string `json:"listeners"`

	Rejected []Rejected `json:"rejected,omitempty"` // by type, name and part
}

// Rejected is a resource, or a part of one, that a proxy has refused.
type Rejected struct {
	Ref
	Part       string // the domain of a virtual host; empty for a whole resource
	Version    string // of what was refused: the resource's, or the part's hash
	Message    string // what the proxy said, bounded and without keys
	ServingOld bool   // the last good version is in force; otherwise there is none
}

// MarshalJSON writes the type by name.
func (r Rejected) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type       string `json:"type"`
		Name       string `json:"name"`
		Part       string `json:"part,omitempty"`
		Version    string `json:"version"`
		Message    string `json:"message"`
		ServingOld bool   `json:"servingOld"`
	}{r.Type.String(), r.Name, r.Part, r.Version, r.Message, r.ServingOld})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Rejected) UnmarshalJSON(text []byte) error {
	var in struct {
		Type, Name, Part, Version, Message string
		ServingOld                         bool
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	for t := range envoy.NumTypes {
		if t.String() == in.Type {
			*r = Rejected{Ref{t, in.Name}, in.Part, in.Version, in.Message, in.ServingOld}
			return nil
		}
	}
	return fmt.Errorf("a resource of type %q", in.Type)
}

// Silent reports whether proxies have said nothing.
func (s *State) Silent() bool { return s.Connected == 0 && !s.Synced && len(s.Rejected) == 0 }

func (s *State) equal(o *State) bool {
	return s.Connected == o.Connected && s.Synced == o.Synced &&
		maps.Equal(s.Listeners, o.Listeners) && slices.Equal(s.Rejected, o.Rejected)
}

// state computes the Gateway's state; g.mu is held.
func (g *gateway) state() State {
	st := State{
		Connected: len(g.sessions),
		Synced:    g.synced,
		Listeners: map[string]string{},
		Rejected:  g.rejected(),
	}
	for s := range g.sessions {
		for name, r := range s.types[envoy.Listeners].records {
			e := g.entries[envoy.Listeners][name]
			if r.acked != "" && (st.Listeners[name] == "" || e != nil && e.want.Version == r.acked) {
				st.Listeners[name] = r.acked
			}
		}
	}
	return st
}

// rejected lists the quarantine. Hosts that are only suspected are not in it, nor
// are listeners whose address may become free at once.
func (g *gateway) rejected() []Rejected {
	var out []Rejected
	for ref, e := range g.held {
		h := e.holding
		if h.passing() {
			continue
		}
		if b := h.bisect; b == nil || b.whole {
			out = append(out, Rejected{
				Ref: ref, Version: e.want.Version, Message: h.message, ServingOld: e.good != nil,
			})
			continue
		}
		for name, w := range h.bisect.withheld {
			if w.culprit {
				out = append(out, Rejected{
					Ref: ref, Part: name, Version: w.hash.String(), Message: w.message, ServingOld: w.old,
				})
			}
		}
	}
	slices.SortFunc(out, func(a, b Rejected) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name), strings.Compare(a.Part, b.Part))
	})
	return out
}

// syncGrace is how long a proxy that has answered everything may take to ask for
// a route table before the table counts as one that it doesn't use.
const syncGrace = time.Second

// checkSynced notes when the proxy has answered its whole configuration.
func (s *session) checkSynced(now time.Time) {
	g := s.gateway
	if g.synced || !g.loaded || g.gone || len(s.unanswered) > 0 || g.binding() {
		return
	}
	for t := range s.types {
		y := &s.types[t]
		if y.startup && (!y.started || y.owed) || len(y.dirty) > 0 {
			return
		}
	}
	if s.settled.IsZero() {
		s.settled = now
		s.notifyAfter(syncGrace)
	}
	if s.hasUnasked() && now.Sub(s.settled) < syncGrace {
		return
	}
	g.synced = true
	g.server.reports.add(g)
}

// hasUnasked reports whether there are route tables, or others of their kind, that
// the proxy has not asked for: it does so only when it has what uses them.
func (s *session) hasUnasked() bool {
	for t := range s.types {
		y := &s.types[t]
		if y.usedBy == nil {
			continue
		}
		for name, e := range s.gateway.entries[t] {
			r := y.records[name]
			if e.holding == nil && (r == nil || r.acked == "") {
				return true
			}
		}
	}
	return false
}

// reports tells Gateways' states, one at a time, from a goroutine that lives as
// long as there is something to tell.
type reports struct {
	tell func(gateway string, state State)
	// state is that of the Gateway's record, if there is one now: proxies that come may
	// find another than those that go have left.
	state func(gateway string) State

	mu      sync.Mutex
	pending map[string]news  // by Gateway
	told    map[string]State // what is not here has no proxies
	running bool
	closed  bool
	done    sync.WaitGroup
}

// news is why a Gateway is looked at.
type news int

const (
	perhaps news = iota // its state may have changed
	anyhow              // it is to be told whether it has changed or not
)

// add notes that a Gateway's state may have changed. It never blocks.
func (r *reports) add(g *gateway) { r.note(g.name, perhaps) }

// again notes that what was told of a Gateway doesn't count any more.
func (r *reports) again(g *gateway) { r.note(g.name, anyhow) }

func (r *reports) note(gateway string, n news) {
	if r.tell == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if r.pending == nil {
		r.pending, r.told = map[string]news{}, map[string]State{}
	}
	r.pending[gateway] = max(r.pending[gateway], n)
	if !r.running {
		r.running = true
		r.done.Go(r.run)
	}
}

func (r *reports) run() {
	for {
		gateway, n, ok := r.next()
		if !ok {
			return
		}
		if st := r.state(gateway); r.isNews(gateway, n, st) {
			r.tell(gateway, st)
		}
	}
}

func (r *reports) next() (gateway string, n news, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for gateway, n := range r.pending {
		delete(r.pending, gateway)
		if !r.closed {
			return gateway, n, true
		}
	}
	r.running = false
	return "", perhaps, false
}

// isNews reports whether a state is to be told, and remembers it.
func (r *reports) isNews(gateway string, n news, st State) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.told[gateway]
	if st.equal(&State{}) {
		delete(r.told, gateway)
	} else {
		r.told[gateway] = st
	}
	return n == anyhow || !st.equal(&last)
}

func (r *reports) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.done.Wait()
}
