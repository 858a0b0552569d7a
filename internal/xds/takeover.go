package xds

import (
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// Who may pass by a shard of a route table may stand beside it, in an extension. What is beside is sent first. If it is
// another one, and the shard itself decides from now on of some requests, these would pass by what is beside now
// and never was for them. So nobody passes by what is beside until the shard has been sent. The other way round
// nothing is to be done: what a shard leaves to what is beside is for the new one.

// noteTakeover notes that a resource takes over from what stands beside it, or may.
func (g *gateway) noteTakeover(ref Ref, e *entry, r *envoy.Resource) {
	beside := g.server.types[ref.Type].beside
	if beside == nil || e.want == nil || g.entries[envoy.Extensions][beside(ref.Name)] == nil {
		return
	}
	if e.quarantine == nil && !r.TakesOver(e.want) {
		return
	}
	for s := range g.sessions {
		if rec := s.found(ref); rec != nil {
			rec.takesOver = true
		}
	}
}

// isTakenOver reports whether something that is about to be sent takes over from an extension. Of what a proxy
// had when it connected it isn't known.
func (p *planning) isTakenOver(extension string) bool {
	for i := range p.types {
		y := &p.types[i]
		if y.beside == nil {
			continue
		}
		for name := range y.dirty {
			rec := p.seen(Ref{envoy.Type(i), name}) //nolint:gosec // an index of the table
			if rec == nil || rec.sent == "" || y.beside(name) != extension {
				continue
			}
			if r, _ := p.gateway.target(Ref{envoy.Type(i), name}); r != nil && r.Version != rec.sent && (rec.takesOver || rec.first == 0) { //nolint:gosec // an index of the table
				return true
			}
		}
	}
	return false
}

// closesMeanwhile reports whether an extension that is to be replaced has to wait for what takes over from it, and
// returns what is sent first; nil where the proxy has that.
func (p *planning) closesMeanwhile(r *envoy.Resource, rec *record) (first *envoy.Resource, waits bool) {
	y := &p.types[r.Type]
	if r.Type != envoy.Extensions || len(r.Guard()) == 0 || rec == nil || rec.sent == "" || rec.sent == r.Version || !p.isTakenOver(r.Name) {
		return nil, false
	}
	p.closed = append(p.closed, Ref{r.Type, r.Name})
	if closed := y.closed(r.Name); closed.Version != rec.sent {
		return closed, true
	}
	return nil, true
}

// reopen sends the extensions that have waited.
func (p *planning) reopen() {
	for _, ref := range p.closed {
		if r := p.change(ref, changed); r != nil {
			p.absent = nil
			p.respond(ref.Type, []*envoy.Resource{r})
		}
	}
}
