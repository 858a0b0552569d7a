package xds

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// hold is the quarantine of one resource: the version that is wanted has been
// refused and is not sent again until it changes.
type hold struct {
	message string
	at      uint64     // the commit in which it began
	bisect  *bisection // for a route table: which of its hosts are to blame
	bind    *binding   // for a listener that could not bind its address
}

// serve returns what proxies are sent: the wanted resource, or what the
// quarantine puts in its place; nil for nothing.
func (e *entry) serve() *envoy.Resource {
	h := e.holding
	switch {
	case h == nil || h.bind != nil && h.bind.trying:
		return e.want
	case h.bisect != nil:
		return h.bisect.table
	default:
		return e.good
	}
}

// refuse puts a resource in quarantine. A refusal of anything but what is served
// now has been dealt with already, or is of a version that is no longer wanted.
// It reports whether the refusal is worth a word.
func (g *gateway) refuse(r *envoy.Resource, message string, now time.Time) (news bool) {
	ref := Ref{r.Type, r.Name}
	t := &g.server.types[r.Type]
	e := g.entries[r.Type][r.Name]
	if e == nil || !e.serve().Equal(r) {
		return true
	}
	if e.good.Equal(r) {
		// Another proxy took it. It isn't sent again, but taken from nobody.
		e.good = nil
	}
	h := e.holding
	if h == nil {
		h = &hold{at: g.commit}
		if t.substitute != nil && len(r.Parts()) > 0 {
			h.bisect = newBisection(t.substitute)
		}
		e.holding = h
		g.held[ref] = e
		g.server.metrics.quarantined.WithLabelValues(t.name).Inc()
	}
	h.message = message
	news = true
	switch {
	case h.bisect != nil:
		h.bisect.refused(e.want, e.good, r, message)
		g.endBisection(ref, e, now)
	case t.passing != nil && t.passing(message):
		news = g.retryBind(ref, e, now)
	case h.bind != nil && h.bind.trying:
		h.bind = nil // bound, and refused for something else
	}
	g.changedHold(ref, now)
	return news
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
	case h.bind != nil && h.bind.trying && e.want.Equal(r):
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
	if b := e.holding.bind; b != nil {
		b.retry.Stop()
	}
	e.holding = nil
	delete(g.held, ref)
	g.server.metrics.quarantined.WithLabelValues(g.server.nameOf(ref.Type)).Dec()
	if !g.server.types[ref.Type].refers {
		return
	}
	// What waited for this may be able to go.
	for ref := range g.leaving {
		g.mark(ref, now)
	}
	g.server.reports.add(g)
}
