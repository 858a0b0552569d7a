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

// await notes the secrets that clusters about to be sent wait for.
func (p *planning) await(clusters []*envoy.Resource) {
	for _, c := range clusters {
		for _, name := range c.WaitsFor() {
			if _, known := p.awaited[name]; !known && !p.hasSecret(name) {
				if p.awaited == nil {
					p.awaited = map[string]time.Time{}
				}
				p.awaited[name] = p.now.Add(secretPatience)
				p.lookAgain(secretPatience)
			}
		}
	}
}

// awaits reports whether a secret is still waited for.
func (p *planning) awaits() bool {
	for name, until := range p.awaited {
		_, exists := p.gateway.target(Ref{envoy.Secrets, name})
		if !exists || p.hasSecret(name) || !p.now.Before(until) {
			delete(p.awaited, name)
		}
	}
	return len(p.awaited) > 0
}

// hasSecret reports whether the proxy has been sent a secret.
func (p *planning) hasSecret(name string) bool {
	r := p.types[envoy.Secrets].records[name]
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
