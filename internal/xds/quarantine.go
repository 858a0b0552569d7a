package xds

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// quarantine is the state of a resource whose wanted version has been refused. That version
// is not sent again until the resource changes.
type quarantine struct {
	message string
	closed  *envoy.Resource // in place of one that no version from before may stand in for
	at      uint64          // the commit in which it began
	since   time.Time       // when it began
	bisect  *bisection      // for a route table: which of its hosts are at fault
	bind    *binding        // for a listener that could not bind its address
}

// serve returns what proxies are sent: the wanted resource, or what the
// quarantine puts in its place; nil for nothing.
func (e *entry) serve() *envoy.Resource {
	q := e.quarantine
	switch {
	case q == nil || q.bind != nil && q.bind.trying:
		return e.want
	case q.bisect != nil:
		return q.bisect.table
	case e.closed():
		return q.closed
	default:
		return e.good
	}
}

// closed reports whether the last good version may not stand in for a refused resource, since it
// lets clients pass that the wanted one is there to stop: a listener is taken away then,
// authorities are replaced by some that have signed for nobody, and who may pass by a divided table by
// nobody. The same goes for these two if no good version is known: the proxy may have one of before this
// process, or another proxy has taken what this one refuses. A table closes its hosts, see bisection.
func (e *entry) closed() bool {
	q := e.quarantine
	if q == nil || q.bisect != nil || q.bind != nil && q.bind.trying {
		return false
	}
	if e.good == nil {
		return q.closed != nil && len(e.want.Guard()) > 0
	}
	return !e.want.Guard().KeptBy(e.good.Guard(), nil)
}

// refuse puts a resource in quarantine. The refusal of a version that is not served now has
// been handled already, or is of no interest any more. It returns whether to report the
// refusal to people.
func (g *gateway) refuse(by *session, r *envoy.Resource, message string, now time.Time) (report bool) {
	ref := Ref{r.Type, r.Name}
	t := &g.server.types[r.Type]
	e := g.entries[r.Type][r.Name]
	if e == nil || !e.serve().EqualBytes(r) {
		return true
	}
	if e.good.EqualBytes(r) {
		// Another proxy has accepted it. It is not sent again, and no proxy loses it.
		e.good = nil
	}
	q := e.quarantine
	if q == nil {
		q = &quarantine{at: g.commit, since: now}
		if t.substitute != nil && len(r.Parts()) > 0 {
			q.bisect = newBisection(t.substitute)
		}
		if t.closed != nil {
			q.closed = t.closed(r.Name)
		}
		e.quarantine = q
		g.quarantined[ref] = e
		g.server.metrics.quarantined.WithLabelValues(t.name).Inc()
	}
	q.message = message
	report = true
	switch {
	case q.bisect != nil:
		q.bisect.refused(e.want, e.good, r, message)
		g.endBisection(ref, e, now)
	case t.passing != nil && t.passing(message):
		report = g.retryBind(by, ref, e, now)
	case q.bind != nil && q.bind.trying:
		q.bind = nil // it was bound, and is refused for another reason
	}
	g.quarantineChanged(ref, now)
	return report
}

// accepted handles a proxy's acknowledgement of a resource in quarantine.
func (g *gateway) accepted(ref Ref, e *entry, r *envoy.Resource, now time.Time) {
	q := e.quarantine
	switch {
	case q.bisect != nil:
		if !q.bisect.accepted(e.want, r) {
			return
		}
		g.endBisection(ref, e, now)
	case q.bind != nil && q.bind.trying && e.want.EqualBytes(r):
		g.endQuarantine(ref, e, now)
	default:
		return
	}
	g.quarantineChanged(ref, now)
}

// reconsider handles a change of what is wanted: what has changed is sent again, except the
// hosts of a table that are withheld and have not changed.
func (g *gateway) reconsider(ref Ref, e *entry, now time.Time) {
	if b := e.quarantine.bisect; b != nil {
		b.rebase(e.want, e.good)
		g.endBisection(ref, e, now)
	} else {
		g.endQuarantine(ref, e, now)
	}
	g.server.reports.add(g)
}

// endBisection ends the quarantine of a table of which nothing is withheld.
func (g *gateway) endBisection(ref Ref, e *entry, now time.Time) {
	if e.quarantine.bisect.idle() {
		g.endQuarantine(ref, e, now)
	}
}

func (g *gateway) endQuarantine(ref Ref, e *entry, now time.Time) {
	if b := e.quarantine.bind; b != nil {
		b.retry.Stop()
	}
	e.quarantine = nil
	delete(g.quarantined, ref)
	g.server.metrics.quarantined.WithLabelValues(g.server.nameOf(ref.Type)).Dec()
	if !g.server.types[ref.Type].refers {
		return
	}
	// Removals that waited for this may be possible now.
	for ref := range g.removals {
		g.mark(ref, now)
	}
	g.server.reports.add(g)
}
