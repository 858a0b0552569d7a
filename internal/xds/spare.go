package xds

import (
	"cmp"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// What only connections that drain use, such as the form that a route table had before it was divided, is kept up to
// date as well. That must not cost what dividing saves: Envoy builds the whole table for each edit of it, before
// anything else of the edits that follow. So it is sent as soon as a proxy has had time for the last one, and what
// changes meanwhile goes together. What is there to stop a request never waits, see envoy.Resource.Stops. What such a
// resource refers to is not removed before it has been sent.

// spareRate is how many bytes of spare resources a proxy is given a second. Envoy takes in fifteen times as many.
const spareRate = 512 << 10

// spareAhead is how much of that may be sent at once: the changes right after a small table has been divided reach
// those who still use it as fast as all others.
const spareAhead = time.Second

// maxSpareWait is how long something waits at most, whatever else has been sent meanwhile.
const maxSpareWait = 5 * time.Second

// unstamped, in place of a nonce, is of removals that wait for a resource that waits.
const unstamped = ^uint64(0)

// spares is what a session knows of spare resources.
type spares struct {
	sent    map[Ref]*envoy.Resource // the last version of each
	waiting map[Ref]*envoy.Resource // and a newer one, which stops nobody
	until   time.Time               // the proxy has to do with the last ones
	timer   *time.Timer             // fires then
}

// resumeSpares decides whether spare resources wait, and marks those that have.
func (p *planning) resumeSpares() {
	if p.sparing = p.now.Add(spareAhead).Before(p.spares.until); p.sparing {
		return
	}
	for ref := range p.spares.waiting {
		p.mark(ref, changed, p.now)
	}
	clear(p.spares.waiting)
}

// spareWaits reports whether a resource that the proxy has in another version is to wait.
func (p *planning) spareWaits(r *envoy.Resource, rec *record) bool {
	ref := Ref{r.Type, r.Name}
	before := p.spares.sent[ref]
	since := cmp.Or(p.spares.waiting[ref], before)
	if !p.sparing || !r.Spare || before == nil || before.Version != rec.sent || r.Stops(before, since) {
		return false
	}
	if p.spares.waiting == nil {
		p.spares.waiting = map[Ref]*envoy.Resource{}
	}
	p.spares.waiting[ref] = r
	if after := p.spares.until.Sub(p.now) - spareAhead; p.spares.timer == nil {
		p.spares.timer = time.AfterFunc(after, p.notify)
	} else {
		p.spares.timer.Reset(after)
	}
	return true
}

// noteSpare notes that a resource is sent.
func (s *session) noteSpare(r *envoy.Resource, now time.Time) {
	ref := Ref{r.Type, r.Name}
	s.forgetSpare(ref)
	if !r.Spare {
		return
	}
	if s.spares.sent == nil {
		s.spares.sent = map[Ref]*envoy.Resource{}
	}
	s.spares.sent[ref] = r
	if len(s.spares.waiting) > 0 {
		return // and not for longer because of what doesn't
	}
	if s.spares.until.Before(now) {
		s.spares.until = now
	}
	s.spares.until = s.spares.until.Add(time.Duration(r.Size()) * time.Second / spareRate)
	if latest := now.Add(maxSpareWait); s.spares.until.After(latest) {
		s.spares.until = latest
	}
}

// forgetSpare forgets a resource that the proxy no longer has.
func (s *session) forgetSpare(ref Ref) {
	delete(s.spares.sent, ref)
	delete(s.spares.waiting, ref)
}
