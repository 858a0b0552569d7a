package xds

import (
	"strings"
	"time"
)

// A listener whose address is in use is tried again. The first pauses are short: when Envoy
// removes a listener, its workers close the socket some ms later, and meanwhile Envoy has
// refused another listener of the same port. The pauses grow, since an address that is
// still in use after that belongs to another process.
const (
	firstBindRetry  = 5 * time.Millisecond
	bindRetryGrowth = 4
	// defaultBindReport is the time, enough for four tries, before a refusal is reported.
	defaultBindReport = 400 * time.Millisecond
)

// binding is the state of a listener that could not bind its address.
type binding struct {
	since    time.Time     // the first refusal
	by       *session      // the last proxy that refused it
	pause    time.Duration // before the next try
	trying   bool          // the wanted version is being sent again
	reported bool          // it has lasted for Server.bindReport
	retry    *time.Timer
}

// retryBind schedules another try after a refusal to bind. It returns whether to report the
// refusal: only once, and only when the address has been in use for some time.
func (g *gateway) retryBind(by *session, ref Ref, e *entry, now time.Time) (report bool) {
	q := e.quarantine
	b := q.bind
	if b == nil {
		b = &binding{since: now, pause: firstBindRetry}
		q.bind = b
	} else {
		b.retry.Stop()
	}
	report = !b.reported && now.Sub(b.since) >= g.server.bindReport
	b.reported = b.reported || report
	b.trying, b.by = false, by
	b.pause = min(b.pause, g.server.bindRetry)
	b.retry = time.AfterFunc(b.pause, func() { g.tryBind(ref, e, q) })
	b.pause *= bindRetryGrowth
	return report
}

// tryBind sends a listener again unless it has been removed or changed.
func (g *gateway) tryBind(ref Ref, e *entry, q *quarantine) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.entries[ref.Type][ref.Name] != e || e.quarantine != q || q.bind == nil {
		return
	}
	q.bind.trying = true
	g.commit++
	g.mark(ref, time.Now())
	for s := range g.sessions {
		s.notify()
	}
}

// mayEnd reports whether a proxy's acknowledgement says that the address is free: others have it that never
// refused it, each on a host of its own.
func (g *gateway) mayEnd(b *binding, by *session) bool {
	_, connected := g.sessions[b.by]
	return b.by == by || !connected
}

// isBinding reports whether it is not known yet if a listener can bind its address.
func (g *gateway) isBinding() bool {
	for _, e := range g.quarantined {
		if e.quarantine.mayPass() {
			return true
		}
	}
	return false
}

// mayPass reports whether the next try is likely to succeed.
func (q *quarantine) mayPass() bool { return q.bind != nil && !q.bind.reported }

// isBindError reports whether a listener was refused because it could not bind its address,
// which another try may mend.
func isBindError(message string) bool {
	for _, s := range []string{"cannot bind", "ddress already in use", "ermission denied", "annot assign requested address"} {
		if strings.Contains(message, s) {
			return true
		}
	}
	return false
}
