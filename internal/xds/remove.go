package xds

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// stamp notes what has to be answered before what is leaving can go: all
// listeners and routes that have been sent.
func (p *planning) stamp() {
	if p.restamp {
		for ref := range p.going {
			p.going[ref] = p.lastUnanswered()
		}
		p.restamp = false
	}
	for _, ref := range p.leaving {
		p.going[ref] = p.lastUnanswered()
	}
}

func (s *session) lastUnanswered() uint64 {
	if n := len(s.unanswered); n > 0 {
		return s.unanswered[n-1]
	}
	return 0
}

// removals sends what may go now.
func (p *planning) removals() {
	if len(p.going) == 0 {
		return
	}
	if !p.mayRemove() {
		p.restamp = true
		return
	}
	var refs []Ref
	for ref, after := range p.going {
		if len(p.unanswered) == 0 || p.unanswered[0] > after {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(p.types[a.Type].removal, p.types[b.Type].removal), strings.Compare(a.Name, b.Name))
	})
	for len(refs) > 0 {
		t := refs[0].Type
		n := slices.IndexFunc(refs, func(r Ref) bool { return r.Type != t })
		if n < 0 {
			n = len(refs)
		}
		p.absent = nil
		p.respond(t, p.removal(refs[:n]))
		refs = refs[n:]
	}
}

// removal returns what takes the place of resources of one type that go now. What
// nothing needs to take the place of becomes absent.
func (p *planning) removal(refs []Ref) (set []*envoy.Resource) {
	for _, ref := range refs {
		delete(p.going, ref)
		y := &p.types[ref.Type]
		rec := y.records[ref.Name]
		if !p.gateway.release(ref, p.now) || rec == nil {
			continue // a quarantine needs it, and says when it no longer does
		}
		if _, exists := p.gateway.target(ref); exists {
			continue
		}
		switch {
		case y.empty == nil:
			p.drop(ref)
			p.absent = append(p.absent, ref.Name)
		case y.with != nil && !p.hasOwner(ref):
			p.drop(ref) // went with its owner
		case rec.subscribed:
			set = append(set, y.empty(ref.Name))
		}
	}
	return set
}

// mayRemove reports whether the proxy has had the time to say what it uses: it
// may have come back with routes that it has not asked for yet.
func (s *session) mayRemove() bool {
	for i := range s.types {
		if y := &s.types[i]; y.refers && !y.started {
			return time.Since(s.connected) >= s.gateway.server.grace
		}
	}
	return true
}
