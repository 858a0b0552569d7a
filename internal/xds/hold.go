package xds

import (
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// hold is the quarantine of one resource: the version that is wanted has been
// refused and is not sent again until it changes.
type hold struct {
	message string
	at      uint64     // the commit in which it began
	bisect  *bisection // for a route table: which of its hosts are to blame
	trying  bool       // a refused bind is being tried again
	retry   *time.Timer
}

// serve returns what proxies are sent: the wanted resource, or what the
// quarantine puts in its place; nil for nothing.
func (e *entry) serve() *envoy.Resource {
	h := e.holding
	switch {
	case h == nil || h.trying:
		return e.want
	case h.bisect != nil:
		return h.bisect.table
	default:
		return e.good
	}
}

// refuse puts a resource in quarantine. A refusal of anything but what is served
// now has been dealt with already, or is of a version that is no longer wanted.
func (g *gateway) refuse(r *envoy.Resource, message string, now time.Time) {
	ref := Ref{r.Type, r.Name}
	e := g.entries[r.Type][r.Name]
	if e == nil || !e.serve().Equal(r) {
		return
	}
	if e.good.Equal(r) {
		// Another proxy took it. It isn't sent again, but taken from nobody.
		e.good = nil
	}
	h := e.holding
	if h == nil {
		h = &hold{at: g.commit}
		if len(r.Parts()) > 0 {
			h.bisect = newBisection()
		}
		e.holding = h
		g.held[ref] = e
		g.server.metrics.quarantined.WithLabelValues(r.Type.String()).Inc()
	}
	h.message = message
	h.trying = false
	switch {
	case h.bisect != nil:
		h.bisect.refused(e.want, e.good, r, message)
		g.endBisection(ref, e, now)
	case r.Type == envoy.Listeners && cannotBind(message):
		g.retryBind(ref, e)
	}
	g.changedHold(ref, now)
}

// accepted follows a proxy's acknowledgement of a resource in quarantine.
func (g *gateway) accepted(ref Ref, e *entry, r *envoy.Resource, now time.Time) {
	h := e.holding
	switch {
	case h.bisect != nil:
		if !h.bisect.accepted(e.want, r) {
			return
		}
		g.endBisection(ref, e, now)
	case h.trying && e.want.Equal(r):
		g.unhold(ref, e, now)
	default:
		return
	}
	g.changedHold(ref, now)
}

// reconsider follows a change of what is wanted: what has changed gets a new
// chance, the hosts of a table that have not changed stay out of it.
func (g *gateway) reconsider(ref Ref, e *entry, now time.Time) {
	if b := e.holding.bisect; b != nil {
		b.rebase(e.want, e.good)
		g.endBisection(ref, e, now)
	} else {
		g.unhold(ref, e, now)
	}
	g.server.reports.add(g)
}

// endBisection ends the quarantine of a table of which nothing is held back.
func (g *gateway) endBisection(ref Ref, e *entry, now time.Time) {
	if e.holding.bisect.idle() {
		g.unhold(ref, e, now)
	}
}

func (g *gateway) unhold(ref Ref, e *entry, now time.Time) {
	if t := e.holding.retry; t != nil {
		t.Stop()
	}
	e.holding = nil
	delete(g.held, ref)
	g.server.metrics.quarantined.WithLabelValues(ref.Type.String()).Dec()
	if ref.Type != envoy.Listeners && ref.Type != envoy.Routes {
		return
	}
	// What waited for this may be able to go.
	for ref := range g.leaving {
		g.mark(ref, now)
	}
	g.server.reports.add(g)
}

// retryBind tries a listener again that could not bind its address.
func (g *gateway) retryBind(ref Ref, e *entry) {
	h := e.holding
	h.retry = time.AfterFunc(g.server.bindRetry, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.entries[ref.Type][ref.Name] != e || e.holding != h {
			return // removed or changed
		}
		h.trying = true
		g.commit++
		now := time.Now()
		g.mark(ref, now)
		for s := range g.sessions {
			s.notify()
		}
	})
}

// cannotBind reports whether a listener was refused for what other processes on
// the proxy's machine do, which may pass.
func cannotBind(message string) bool {
	for _, s := range []string{"cannot bind", "ddress already in use", "ermission denied", "annot assign requested address"} {
		if strings.Contains(message, s) {
			return true
		}
	}
	return false
}
