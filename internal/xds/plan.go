package xds

import (
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// maxResponse is the most that resources have a response together for, in bytes of their
// bodies. It is far above the size of a change.
const maxResponse = 3 << 20

// plan returns what to send now, in order, and counts it as sent. All of it is sent before
// the next plan, so that each is consistent in itself.
//
// The order makes before it breaks: a cluster counts as missing while it waits for its
// endpoints, so they follow at once; what refers to it comes after them.
func (s *session) plan(now time.Time) []*flight {
	g := s.gateway
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.loaded {
		return nil
	}
	s.changes++
	p := &planning{session: s, now: now, since: s.dirty}
	if len(s.unanswered) < maxUnanswered {
		p.all()
	}
	p.deny()
	for t := range p.types {
		if y := &p.types[t]; y.mostDirty > fewEntries && len(y.dirty) == 0 {
			y.dirty, y.mostDirty = map[string]reason{}, 0 // a map never shrinks
		}
	}
	return p.out
}

// all sends what there is to send.
func (p *planning) all() {
	s := p.session
	p.resumeSpares()
	if p.since.IsZero() {
		p.since = p.now
	}
	s.dirty = time.Time{}

	if !p.additions() {
		return
	}
	s.dirty = time.Time{} // what was forced has been sent
	p.stamp()
	p.removals()
	s.checkSynced(p.now)
	s.caughtUp()
}

// additions sends what is new, type by type, and reports whether that was all: what refers
// to others may have to wait until these can be used.
func (p *planning) additions() bool {
	var waiting []*envoy.Resource
	referring := false
	for i := range p.types {
		t := envoy.Type(i) //nolint:gosec // an index of the table
		y := &p.types[t]
		if y.refers && !referring {
			referring = true
			p.await(waiting)
			if p.waitsForForms() {
				p.postpone()
				return false
			}
			p.await(p.ahead())
			p.answerAwaited()
			if p.awaits() {
				p.postpone()
				return false
			}
		}
		if y.after != nil && !y.started && !p.types[*y.after].started {
			continue
		}
		set := p.changes(t)
		p.respond(t, set)
		if y.waitsFor != nil {
			waiting = append(waiting, set...)
		}
		p.follow(t, set)
	}
	p.reopen()
	return true
}

// follow marks what belongs to resources that have just been sent: it is sent after them.
func (p *planning) follow(t envoy.Type, set []*envoy.Resource) {
	if len(set) == 0 {
		return
	}
	for i := range p.types {
		y := &p.types[i]
		if y.askedOnce() && *y.usedBy == t {
			p.tellAgain(envoy.Type(i)) //nolint:gosec // an index of the table
		}
		if y.with == nil || *y.with != t {
			continue
		}
		for _, r := range set {
			ref := Ref{envoy.Type(i), r.Name} //nolint:gosec // an index of the table
			if _, exists := p.gateway.target(ref); exists || p.seen(ref) != nil {
				p.mark(ref, forced, p.now)
			}
		}
	}
}

// tellAgain has all of a type sent once more, see askedOnce.
func (p *planning) tellAgain(t envoy.Type) {
	if !p.types[t].wildcard {
		return // it will ask
	}
	for name := range p.gateway.entries[t] {
		p.mark(Ref{t, name}, forced, p.now)
	}
}

// planning is one run of plan.
type planning struct {
	*session
	now      time.Time
	since    time.Time
	out      []*flight
	absent   []string // of the present type: names of what the proxy has and is not to have
	toRemove []Ref    // what the proxy should no longer have
	sparing  bool     // spare resources wait
	closed   []Ref    // extensions by which nobody passes until what takes over from them has been sent
}

// changes returns the resources of a type that are to be sent, sorted by name, and collects
// what is to be removed.
func (p *planning) changes(t envoy.Type) []*envoy.Resource {
	y := &p.types[t]
	p.absent = nil
	if len(y.dirty) == 0 {
		return nil
	}
	var set []*envoy.Resource
	for _, name := range slices.Sorted(maps.Keys(y.dirty)) {
		if r := p.change(Ref{t, name}, y.dirty[name]); r != nil {
			set = append(set, r)
		}
	}
	clear(y.dirty)
	return set
}

// change decides on one resource.
func (p *planning) change(ref Ref, why reason) *envoy.Resource {
	g, y := p.gateway, &p.types[ref.Type]
	if g.removals[ref] != nil {
		p.toRemove = append(p.toRemove, ref)
	} else {
		delete(p.removing, ref)
	}
	rec := p.seen(ref)
	if !y.wildcard && rec == nil && why != forced {
		return nil // not asked for
	}
	target, exists := g.target(ref)
	if target == nil {
		delete(p.spares.waiting, ref)
	}
	switch {
	case target != nil:
		if first, waits := p.closesMeanwhile(target, rec); waits {
			return first
		}
		return p.unlessHad(target, rec, why)
	case why == asked && (rec == nil || rec.sent == ""):
		if y.empty != nil {
			return y.empty(ref.Name)
		}
		y.deny(ref.Name)
	case why == forced && y.empty != nil && p.hasOwner(ref):
		return y.empty(ref.Name) // the owner waits for an answer
	case exists && rec != nil && rec.warming:
		p.drop(ref)
		p.absent = append(p.absent, ref.Name)
	case exists:
		// It is in quarantine without a good version: what the proxy has stays.
	case rec == nil || rec.sent == "":
	case y.removedAtOnce:
		p.drop(ref)
		p.absent = append(p.absent, ref.Name)
	case y.usedBy != nil && p.sent(*y.usedBy) && (y.staysUsed == nil || !y.staysUsed(ref.Name)):
		// What used it has changed too, and goes on with it while it drains.
		if y.askedOnce() {
			p.doubt(ref, rec) // and then forgets it
		}
	case y.empty == nil:
		p.toRemove = append(p.toRemove, ref)
	default:
		if e := y.empty(ref.Name); rec.sent != e.Version {
			p.toRemove = append(p.toRemove, ref)
		} else if why == asked {
			return e
		}
	}
	return nil
}

// hasOwner reports whether the proxy has, or is sent, what a resource belongs to.
func (s *session) hasOwner(ref Ref) bool {
	with := s.types[ref.Type].with
	return with != nil && s.seen(Ref{*with, ref.Name}) != nil
}

// unlessHad returns a resource unless the proxy has it or has refused it.
func (p *planning) unlessHad(r *envoy.Resource, rec *record, why reason) *envoy.Resource {
	if p.refused[Ref{r.Type, r.Name}] == r.Version {
		return nil
	}
	switch {
	case why != changed || rec == nil || rec.sent == "":
		return r
	case rec.sent != r.Version && p.spareWaits(r, rec):
		return nil
	case rec.sent != r.Version:
		return r
	}
	delete(p.spares.waiting, Ref{r.Type, r.Name}) // it is again what it was
	if rec.acked == r.Version && rec.nonce == 0 {
		// The proxy connected with it, which is as good as an acknowledgement.
		p.gateway.acknowledged(p.session, r, p.gateway.commit, p.now)
		p.settle(Ref{r.Type, r.Name}, rec)
	}
	return nil
}

// sent reports whether something of a type has been sent or removed.
func (p *planning) sent(t envoy.Type) bool {
	for _, f := range p.out {
		if f.typ == t && len(f.set)+len(f.removed) > 0 {
			return true
		}
	}
	return false
}

// respond sends resources of a type, and the names that are absent of it.
func (p *planning) respond(t envoy.Type, set []*envoy.Resource) {
	y := &p.types[t]
	if y.shared {
		p.share(t, set)
		return
	}
	if y.sharedTaken > 0 && len(set) >= y.sharedTaken {
		if taken, untried := p.taken(set); len(taken) >= y.sharedTaken {
			p.single(t, untried)
			p.absent = nil // these responses have them
			p.share(t, taken)
			return
		}
	}
	p.single(t, set)
}

// taken separates the resources that a proxy of the Gateway has accepted as they are from
// those that none has.
func (p *planning) taken(set []*envoy.Resource) (taken, untried []*envoy.Resource) {
	for _, r := range set {
		e := p.gateway.entries[r.Type][r.Name]
		if e != nil && e.want == r && e.good.EqualBytes(r) {
			taken = append(taken, r)
		} else {
			untried = append(untried, r)
		}
	}
	return taken, untried
}

// share puts resources and removals of one type into as few responses as their size allows.
// A refusal names the resources at fault and Envoy accepts the others. A resource that is
// marked as alone has a response of its own all the same.
func (p *planning) share(t envoy.Type, set []*envoy.Resource) {
	f := p.response(t)
	f.removed = p.absent
	size := 0
	var alone []*envoy.Resource
	for _, r := range set {
		if p.alone[Ref{t, r.Name}] {
			alone = append(alone, r)
			continue
		}
		if n := r.Size(); size > 0 && size+n > maxResponse {
			p.send(f)
			f, size = p.response(t), 0
		} else {
			size += n
		}
		f.set = append(f.set, r)
	}
	if len(f.set)+len(f.removed) > 0 || p.types[t].owed && len(alone) == 0 {
		p.send(f)
	}
	for _, r := range alone {
		f := p.response(t)
		f.set = []*envoy.Resource{r}
		p.send(f)
	}
}

// single puts each resource into a response of its own, so that a refusal concerns one
// resource, which is known.
func (p *planning) single(t envoy.Type, set []*envoy.Resource) {
	for _, r := range set {
		f := p.response(t)
		f.set = []*envoy.Resource{r}
		target, _ := p.gateway.target(Ref{t, r.Name})
		f.filler = !target.EqualBytes(r)
		p.send(f)
	}
	if len(p.absent) > 0 || p.types[t].owed {
		f := p.response(t)
		f.removed = p.absent
		p.send(f)
	}
}

func (p *planning) response(t envoy.Type) *flight {
	return &flight{typ: t, commit: p.gateway.commit, since: p.since, several: len(p.gateway.sessions) > 1}
}

// send numbers a response and counts it as sent.
func (p *planning) send(f *flight) {
	y := &p.types[f.typ]
	y.owed = false
	y.pushed += uint64(len(f.set))
	p.nonce++
	f.nonce = p.nonce
	f.current = len(f.set)
	for _, r := range f.set {
		rec := p.record(Ref{f.typ, r.Name})
		p.supersede(rec)
		rec.sent, rec.nonce, rec.warming, rec.takesOver = r.Version, f.nonce, false, false
		delete(p.doubtful, Ref{f.typ, r.Name})
		p.noteSpare(r, p.now)
		if rec.first == 0 {
			rec.first = f.nonce
			rec.early = !y.started
		}
	}
	if len(p.doubtful) == 0 {
		p.doubtful = nil // a map never shrinks
	}
	p.inflight[f.nonce] = f
	p.mostInflight = max(p.mostInflight, len(p.inflight))
	if y.refers {
		p.unanswered = append(p.unanswered, f.nonce)
	}
	p.out = append(p.out, f)
}

// supersede records that a newer response replaces what the last one said of a resource.
func (s *session) supersede(r *record) {
	f := s.inflight[r.nonce]
	if f == nil {
		return
	}
	f.current--
	if f.current > 0 || s.types[f.typ].refers || len(f.removed) > 0 {
		return
	}
	if len(s.inflight) > maxReplaced {
		s.land(f)
	}
}

// deny notes a name that is to be answered with "does not exist".
func (y *subscription) deny(name string) {
	if y.denied == nil {
		y.denied = map[string]struct{}{}
	}
	y.denied[name] = struct{}{}
}

// deny answers the names of what does not exist. These responses are not remembered, since nothing
// follows from what a proxy says to them: clients can have it ask for any number of names, and one that
// never answers can ask for one any number of times.
func (p *planning) deny() {
	for i := range p.types {
		y := &p.types[i]
		if len(y.denied) == 0 {
			continue
		}
		p.nonce++
		p.out = append(p.out, &flight{
			typ: envoy.Type(i), nonce: p.nonce, removed: slices.Sorted(maps.Keys(y.denied)), //nolint:gosec // an index of the table
		})
		y.denied = nil
	}
}

// drop forgets a resource that the proxy is told to forget.
func (s *session) drop(ref Ref) {
	r := s.found(ref)
	if r == nil {
		return
	}
	s.supersede(r)
	delete(s.alone, ref)
	delete(s.refused, ref)
	if r.subscribed {
		*r = record{subscribed: true, charged: r.charged}
	} else {
		s.forget(ref)
	}
}
