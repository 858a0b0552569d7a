package xds

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// A cluster whose secrets the proxy has never had counts as missing until they have
// come, and the proxy asks for them only when it has the cluster. What may refer to
// the cluster, listeners and routes, is therefore held back for the time that this
// takes: a few ms. A proxy that never asks, such as one that starts or waits for a
// name to be resolved, is not waited for longer than secretPatience.
const secretPatience = 500 * time.Millisecond

// await remembers what the resources wait for that have just been sent.
func (p *planning) await(set []*envoy.Resource) {
	for _, r := range set {
		for _, name := range r.WaitsFor() {
			ref := Ref{*p.types[r.Type].waitsFor, name}
			if _, known := p.awaited[ref]; !known && !p.has(ref) {
				if p.awaited == nil {
					p.awaited = map[Ref]time.Time{}
				}
				p.awaited[ref] = p.now.Add(secretPatience)
				p.lookAgain(secretPatience)
			}
		}
	}
}

// awaits reports whether something is still waited for.
func (p *planning) awaits() bool {
	for ref, until := range p.awaited {
		_, exists := p.gateway.target(ref)
		if !exists || p.has(ref) || !p.now.Before(until) {
			delete(p.awaited, ref)
		}
	}
	return len(p.awaited) > 0
}

// has reports whether the proxy has been sent a resource.
func (p *planning) has(ref Ref) bool {
	r := p.types[ref.Type].records[ref.Name]
	return r != nil && r.sent != ""
}

// lookAgain wakes the session after a while; the last call counts.
func (s *session) lookAgain(after time.Duration) {
	if s.patience == nil {
		s.patience = time.AfterFunc(after, s.notify)
	} else {
		s.patience.Reset(after)
	}
}

// postpone leaves the rest of a plan for later. What is to be taken away can't go
// before what still refers to it has been sent, so that it is looked at again then.
func (p *planning) postpone() {
	for _, ref := range p.leaving {
		p.mark(ref, changed, p.now)
	}
	p.dirty = p.since
}
