package xds

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// Envoy counts a cluster as missing until it has the cluster's secrets, and asks for them
// only when it has the cluster. Listeners and routes, which may refer to the cluster,
// therefore wait until they are sent: a few ms. A proxy that starts, or that waits for a
// name to be resolved, may never ask: the wait ends Server.maxAwait after it has answered to
// the cluster. One that gets no processor answers late, and asks no sooner.
//
// What uses scopes waits in the same way for the route tables to which new ones lead.
const (
	defaultMaxAwait = 500 * time.Millisecond
	maxAnswer       = 10 * time.Second
)

// awaiting is the wait for a resource.
type awaiting struct {
	by    Ref       // what waits, of which the answer is due
	since time.Time // it was sent, or answered to
	sent  time.Time
}

// await remembers what the resources that have just been sent wait for.
func (p *planning) await(set []*envoy.Resource) {
	for _, r := range set {
		for _, name := range r.WaitsFor() {
			ref := Ref{*p.types[r.Type].waitsFor, name}
			if _, known := p.awaited[ref]; !known && !p.has(ref) {
				if p.awaited == nil {
					p.awaited = map[Ref]*awaiting{}
				}
				p.awaited[ref] = &awaiting{Ref{r.Type, r.Name}, p.now, p.now}
				p.wakeAfter(p.gateway.server.maxAwait)
			}
		}
	}
}

// ahead sends what is new of the types that a proxy has asked for once and for all, and
// returns it. What else there is to do about them is done in their turn.
func (p *planning) ahead() (out []*envoy.Resource) {
	for i := range p.types {
		t, y := envoy.Type(i), &p.types[i] //nolint:gosec // an index of the table
		if !y.askedOnce() || !y.wildcard {
			continue
		}
		var set []*envoy.Resource
		for _, name := range slices.Sorted(maps.Keys(y.dirty)) {
			ref := Ref{t, name}
			if target, _ := p.gateway.target(ref); target == nil || p.has(ref) && p.seen(ref).sent == target.Version {
				continue
			}
			if r := p.change(ref, y.dirty[name]); r != nil {
				set = append(set, r)
			}
			delete(y.dirty, name)
		}
		if len(set) > 0 {
			p.absent = nil
			p.respond(t, set)
		}
		out = append(out, set...)
	}
	return out
}

// answerAwaited sends what is waited for because of what was sent ahead, as soon as the proxy
// asks for it: nothing else uses it yet. It may refer to what waits for secrets.
func (p *planning) answerAwaited() {
	refs := slices.SortedFunc(maps.Keys(p.awaited), func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	for _, ref := range refs {
		y := &p.types[ref.Type]
		if !y.refers {
			return
		}
		if y.dirty[ref.Name] != asked || p.has(ref) {
			continue
		}
		if r := p.change(ref, asked); r != nil {
			p.absent = nil
			p.respond(ref.Type, []*envoy.Resource{r})
		}
		delete(y.dirty, ref.Name)
	}
}

// awaits reports whether something is still waited for.
func (p *planning) awaits() bool {
	for ref, w := range p.awaited {
		if _, exists := p.gateway.target(ref); !exists || p.has(ref) {
			delete(p.awaited, ref)
			continue
		}
		if r := p.seen(w.by); r != nil && r.nonce != 0 && p.now.Sub(w.sent) < maxAnswer {
			w.since = p.now
			p.wakeAfter(p.gateway.server.maxAwait)
		} else if p.now.Sub(w.since) >= p.gateway.server.maxAwait {
			delete(p.awaited, ref)
		}
	}
	if len(p.awaited) == 0 {
		p.awaited = nil // a map never shrinks
	}
	return p.awaited != nil
}

// has reports whether the proxy has been sent a resource.
func (p *planning) has(ref Ref) bool {
	r := p.seen(ref)
	return r != nil && r.sent != ""
}

// wakeAfter wakes the session after some time. A later call replaces an earlier one.
func (s *session) wakeAfter(after time.Duration) {
	if s.awaitTimer == nil {
		s.awaitTimer = time.AfterFunc(after, s.notify)
	} else {
		s.awaitTimer.Reset(after)
	}
}

// postpone leaves the rest of a plan for a later one. A removal has to wait until what
// still refers to the resource has been sent, so that it is marked again.
func (p *planning) postpone() {
	for _, ref := range p.toRemove {
		p.mark(ref, changed, p.now)
	}
	p.dirty = p.since
}
