package xds

import (
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// gateway is the desired configuration of one Gateway, with what is in
// quarantine, and the sessions of its proxies.
//
// Its mutex also guards the sessions' state. It is held for computing only,
// never while anything is sent.
type gateway struct {
	name     object.Name
	revision string // of its proxies; empty for those without one
	server   *Server
	// These are guarded by the server's mutex: Serve calls and streams, when the last of them ended, and the
	// records of revisions, which only that of proxies without one has.
	users     int
	left      time.Time
	revisions map[string]*gateway

	mu          sync.Mutex
	loaded      bool                // the first Update has come
	gone        bool                // the last Update has Gone
	commit      uint64              // counts changes of what is served, by which answers are ordered
	entries     []map[string]*entry // by envoy.Type
	slots       []slots             // by envoy.Type
	removals    map[Ref]*removal
	quarantined map[Ref]*entry
	sessions    map[*session]struct{}
	leftovers   map[Ref]bool
	charged     int // what unknown names count for in all sessions
	synced      bool
	bodies      bodies // with a mutex of its own
}

// entry is a resource that the Gateway should have.
type entry struct {
	want       *envoy.Resource
	sum        uint64          // hashOf want
	good       *envoy.Resource // what a proxy has acknowledged last, usually want
	goodAt     uint64          // the commit in which good was sent
	since      uint64          // the commit in which the name appeared
	quarantine *quarantine     // set while want is in quarantine
	slot       int             // in subscription.settled
}

// removal is a resource that the Gateway should no longer have, while a proxy may still
// route to it: it is served until a proxy has acknowledged the listeners and routes that
// came with its removal.
type removal struct {
	last *envoy.Resource
	was  *entry
}

func newGateway(s *Server, name object.Name) *gateway {
	g := &gateway{
		name:        name,
		server:      s,
		entries:     make([]map[string]*entry, len(s.types)),
		slots:       make([]slots, len(s.types)),
		removals:    map[Ref]*removal{},
		quarantined: map[Ref]*entry{},
		sessions:    map[*session]struct{}{},
		leftovers:   map[Ref]bool{},
	}
	for t := range g.entries {
		g.entries[t] = map[string]*entry{}
	}
	return g
}

func (g *gateway) isGone() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gone
}

func (g *gateway) connected() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sessions)
}

func (g *gateway) isLoaded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.loaded
}

// apply takes updates in one step: of a Gateway that goes and comes back before proxies
// are told of it, none is told to remove anything.
func (g *gateway) apply(updates []Update, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range updates {
		g.applyOne(&updates[i], now)
	}
	for s := range g.sessions {
		s.notify()
	}
}

func (g *gateway) applyOne(u *Update, now time.Time) {
	g.commit++
	g.bodies.forget()
	if g.gone != u.Gone {
		g.gone = u.Gone
		g.restart()
	}
	if u.Gone {
		g.clear(now)
	} else {
		for _, r := range u.Set {
			g.set(r, now)
		}
		for _, ref := range u.Remove {
			g.remove(ref, now)
		}
	}
	g.tookForms(u.TookForms)
	if !g.loaded {
		g.loaded = true
		for s := range g.sessions {
			s.markAll(now)
		}
	}
}

// restart forgets what proxies have acknowledged: the Gateway is another one of the same
// name from now on.
func (g *gateway) restart() {
	g.synced = false
	for s := range g.sessions {
		s.answeredAt = time.Time{}
	}
	g.server.reports.addAlways(g)
}

func (g *gateway) set(r *envoy.Resource, now time.Time) {
	ref := Ref{r.Type, r.Name}
	e := g.entries[r.Type][r.Name]
	if e == nil {
		e = &entry{since: g.commit, slot: g.slots[r.Type].take()}
		if l := g.removals[ref]; l != nil {
			delete(g.removals, ref)
			e.since, e.good, e.goodAt = l.was.since, l.was.good, l.was.goodAt
		}
		g.entries[r.Type][r.Name] = e
	}
	if e.want.Equal(r) {
		if !e.want.CarriesAlike(r) {
			e.want = r
			g.server.reports.add(g)
		}
		return
	}
	g.remember(ref, e)
	g.noteTakeover(ref, e, r)
	if !e.want.CarriesAlike(r) {
		g.server.reports.add(g)
	}
	e.want, e.sum = r, hashOf(g.server.types[r.Type].name, r.Name, r.Version)
	if e.quarantine != nil {
		g.reconsider(ref, e, now)
	}
	g.mark(ref, now)
}

func (g *gateway) remove(ref Ref, now time.Time) {
	e := g.entries[ref.Type][ref.Name]
	if e == nil {
		return
	}
	g.unsettle(ref)
	last := e.serve()
	if e.quarantine != nil {
		g.endQuarantine(ref, e, now)
	}
	delete(g.entries[ref.Type], ref.Name)
	g.slots[ref.Type].free = append(g.slots[ref.Type].free, e.slot)
	if !g.known(ref, e) {
		// No proxy has had it. Names that a slow one has never had must not
		// accumulate.
		for s := range g.sessions {
			s.unmark(ref)
		}
		return
	}
	if last != nil && !g.server.types[ref.Type].refers {
		g.removals[ref] = &removal{last: last, was: e}
	}
	g.mark(ref, now)
}

// known reports whether a proxy may have a resource.
func (g *gateway) known(ref Ref, e *entry) bool {
	if e.good != nil {
		return true
	}
	for s := range g.sessions {
		if y := &s.types[ref.Type]; s.seen(ref) != nil || len(y.spelled.of[ref.Name]) > 0 {
			return true
		}
	}
	return false
}

func (g *gateway) clear(now time.Time) {
	for t, entries := range g.entries {
		for name := range entries {
			g.remove(Ref{envoy.Type(t), name}, now) //nolint:gosec // an index of the types' array
		}
	}
	for ref := range g.removals {
		delete(g.removals, ref)
		g.mark(ref, now)
	}
}

// mark makes the next plan of every session decide on a resource.
func (g *gateway) mark(ref Ref, now time.Time) {
	for s := range g.sessions {
		delete(s.refused, ref)
		s.mark(ref, changed, now)
		s.markSpellings(ref, now)
	}
}

// quarantineChanged sends what a quarantine serves now under a name.
func (g *gateway) quarantineChanged(ref Ref, now time.Time) {
	g.commit++
	g.mark(ref, now)
	for s := range g.sessions {
		s.notify()
	}
	g.server.reports.add(g)
}

// target returns what a proxy should have under a name. A resource that exists
// may have nothing to serve: its only version is in quarantine, and what a proxy
// has of it stays.
func (g *gateway) target(ref Ref) (r *envoy.Resource, exists bool) {
	if e := g.entries[ref.Type][ref.Name]; e != nil {
		r := e.serve()
		return r, r != nil || !e.closed()
	}
	if l := g.removals[ref]; l != nil {
		return l.last, true
	}
	return g.spelled(ref)
}

// release reports whether the quarantine lets a resource be removed. A session calls it
// when the proxy has acknowledged all that was sent before the removal.
func (g *gateway) release(ref Ref, now time.Time) bool {
	l := g.removals[ref]
	if l == nil {
		return true
	}
	if l.was.since < g.retained() {
		return false
	}
	delete(g.removals, ref)
	g.mark(ref, now)
	for s := range g.sessions {
		s.notify()
	}
	return true
}

// retained returns a commit: resources that appeared before it may be referred to by the
// last good versions of listeners and routes in quarantine, and can't be removed.
func (g *gateway) retained() (before uint64) {
	for ref, e := range g.quarantined {
		if g.server.types[ref.Type].refers && e.good != nil {
			before = max(before, e.quarantine.at)
		}
	}
	return before
}

// acknowledged records that a proxy has a resource in force, as it was at a commit.
func (g *gateway) acknowledged(by *session, r *envoy.Resource, at uint64, now time.Time) {
	r = g.unspelled(r)
	ref := Ref{r.Type, r.Name}
	e := g.entries[r.Type][r.Name]
	if e == nil || at < e.since || at < e.goodAt {
		return // of a predecessor under this name, or a slower proxy's answer
	}
	if q := e.quarantine; q != nil && q.closed != nil && (q.closed.EqualBytes(r) || len(e.want.Guard()) > 0 && e.want.EqualBytes(r)) {
		return // what one proxy refuses is not good for that another takes it: nobody passes by either
	}
	if q := e.quarantine; q != nil && q.bind != nil && e.want.EqualBytes(r) && !g.mayEnd(q.bind, by) {
		return // it would be sent at once to the proxy that can't bind it, without a pause
	}
	e.good, e.goodAt = r, at
	if e.quarantine != nil {
		g.accepted(ref, e, r, now)
	}
}

func (g *gateway) attach(s *session, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sessions[s] = struct{}{}
	s.behindTimer = time.AfterFunc(g.server.behindAfter, s.checkBehind)
	for ref := range g.removals {
		s.mark(ref, changed, now)
	}
	g.server.metrics.sessions.Inc()
	g.server.reports.add(g)
}

func (g *gateway) detach(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sessions, s)
	g.charged -= s.charged
	g.rememberLeftovers(s)
	g.server.metrics.sessions.Dec()
	g.server.reports.add(g)
}
