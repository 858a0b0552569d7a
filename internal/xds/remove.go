package xds

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// stamp records which answers have to come before something can be removed: those to all
// extensions, listeners and routes that have been sent.
func (p *planning) stamp() {
	last := p.lastUnanswered()
	if len(p.spares.waiting) > 0 {
		last = unstamped
	}
	for ref, after := range p.removing {
		if p.restamp || after == unstamped {
			p.removing[ref] = last
		}
	}
	p.restamp = false
	for _, ref := range p.toRemove {
		p.removing[ref] = last
	}
}

func (s *session) lastUnanswered() uint64 {
	if n := len(s.unanswered); n > 0 {
		return s.unanswered[n-1]
	}
	return 0
}

// removals removes what no longer has to wait, type by type.
func (p *planning) removals() {
	if len(p.removing) == 0 {
		return
	}
	if !p.mayRemove() {
		p.restamp = true
		return
	}
	var refs []Ref
	for ref, after := range p.removing {
		if after != unstamped && (len(p.unanswered) == 0 || p.unanswered[0] > after) {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(cmp.Compare(p.types[a.Type].removalOrder, p.types[b.Type].removalOrder), strings.Compare(a.Name, b.Name))
	})
	for len(refs) > 0 {
		t := refs[0].Type
		n := slices.IndexFunc(refs, func(r Ref) bool { return r.Type != t })
		if n < 0 {
			n = len(refs)
		}
		p.absent = nil
		p.respond(t, p.replacements(refs[:n]))
		refs = refs[n:]
	}
}

// replacements returns the emptied resources that replace those of one type which are
// removed now. What Envoy can be told to remove becomes absent instead.
func (p *planning) replacements(refs []Ref) (set []*envoy.Resource) {
	for _, ref := range refs {
		delete(p.removing, ref)
		y := &p.types[ref.Type]
		rec := p.seen(ref)
		if !p.gateway.release(ref, p.now) || rec == nil {
			continue // a quarantine needs it, and marks it again when it ends
		}
		if _, exists := p.gateway.target(ref); exists {
			continue
		}
		switch {
		case y.empty == nil:
			p.drop(ref)
			p.absent = append(p.absent, ref.Name)
		case y.with != nil && !p.hasOwner(ref):
			p.drop(ref) // Envoy dropped it with its owner
		case rec.subscribed:
			set = append(set, y.empty(ref.Name))
		}
	}
	return set
}

// mayRemove reports whether the proxy has had the time to name what it uses: it may have
// connected with routes or extensions that it has not asked for yet.
func (p *planning) mayRemove() bool {
	for i := range p.types {
		y := &p.types[i]
		if !y.startup && len(p.gateway.entries[i]) == 0 {
			continue // there is nothing of the type that could refer to what is removed
		}
		if y.refers && !y.started {
			return p.now.Sub(p.connected) >= p.gateway.server.grace
		}
	}
	return true
}
