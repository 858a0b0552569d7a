package xds

import (
	"strings"
	"time"
)

// A listener whose address is taken is tried again. Soon at first: Envoy closes
// the socket of a listener that it removes only when its workers have let go of
// it, a few ms after it has read on, and by then has refused another listener of
// the same port. Then ever less often: what is left is what other processes hold.
const (
	firstBindRetry  = 5 * time.Millisecond
	bindRetryGrowth = 4
	// bindPatience is how long a refusal is nobody's business, four tries.
	bindPatience = 400 * time.Millisecond
)

// binding is the state of a listener that could not bind its address.
type binding struct {
	since  time.Time     // the first refusal
	pause  time.Duration // before the next try
	trying bool          // the wanted version is served, to see
	lasts  bool          // long enough to be reported
	retry  *time.Timer
}

// retryBind follows a refusal to bind and reports whether it is news: one that
// may pass at once isn't, nor one more of those that are known.
func (g *gateway) retryBind(ref Ref, e *entry, now time.Time) (news bool) {
	h := e.holding
	b := h.bind
	if b == nil {
		b = &binding{since: now, pause: firstBindRetry}
		h.bind = b
	} else {
		b.retry.Stop()
	}
	news = !b.lasts && now.Sub(b.since) >= bindPatience
	b.lasts = b.lasts || news
	b.trying = false
	b.pause = min(b.pause, g.server.bindRetry)
	b.retry = time.AfterFunc(b.pause, func() { g.tryBind(ref, e, h) })
	b.pause *= bindRetryGrowth
	return news
}

// tryBind sends a listener again unless it has been removed or changed.
func (g *gateway) tryBind(ref Ref, e *entry, h *hold) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.entries[ref.Type][ref.Name] != e || e.holding != h || h.bind == nil {
		return
	}
	h.bind.trying = true
	g.commit++
	g.mark(ref, time.Now())
	for s := range g.sessions {
		s.notify()
	}
}

// binding reports whether it is open if a listener can bind its address.
func (g *gateway) binding() bool {
	for _, e := range g.held {
		if e.holding.passing() {
			return true
		}
	}
	return false
}

// passing reports whether a refusal is likely to pass at once.
func (h *hold) passing() bool { return h.bind != nil && !h.bind.lasts }

// isBindError reports whether a listener was refused for what holds its address,
// which may pass.
func isBindError(message string) bool {
	for _, s := range []string{"cannot bind", "ddress already in use", "ermission denied", "annot assign requested address"} {
		if strings.Contains(message, s) {
			return true
		}
	}
	return false
}
