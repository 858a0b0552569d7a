package xds

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// maxResponse bounds a response that several resources share, in bytes of their
// bodies. It is far above what a change is made of.
const maxResponse = 3 << 20

// plan returns what to send now, in order, and takes it as sent. What it returns
// is sent whole before the next plan, so that each is consistent in itself.
//
// The order makes before it breaks: a cluster counts as missing while it waits
// for its endpoints, so they follow at once; only then may anything refer to it.
func (s *session) plan(now time.Time) []*flight {
	g := s.gateway
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.loaded || len(s.unanswered) >= maxUnanswered {
		return nil
	}
	p := &planning{session: s, now: now, since: s.dirty}
	if p.since.IsZero() {
		p.since = now
	}
	s.dirty = time.Time{}

	clusters := p.changes(envoy.Clusters)
	p.share(envoy.Clusters, clusters)
	for _, c := range clusters {
		// Envoy subscribes to the endpoints of a cluster once, and expects them
		// again whenever the cluster has been replaced.
		ref := Ref{envoy.Endpoints, c.Name}
		if _, exists := g.target(ref); exists || s.types[envoy.Endpoints].records[c.Name] != nil {
			s.mark(ref, forced, now)
		}
	}
	if s.takesUnasked() {
		p.endpoints(p.changes(envoy.Endpoints))
	}
	p.single(envoy.Secrets, p.changes(envoy.Secrets))
	if p.await(clusters); p.awaits() {
		p.postpone()
		return p.out
	}
	// Removals of listeners share the response of additions: Envoy does them
	// first, so an address can pass from one listener to another.
	p.share(envoy.Listeners, p.changes(envoy.Listeners))
	p.single(envoy.Routes, p.changes(envoy.Routes))
	s.dirty = time.Time{} // what was forced has been sent
	p.stamp()
	p.removals()
	s.checkSynced(now)
	return p.out
}

// takesUnasked reports whether the proxy takes endpoints that it is about to ask
// for. One that starts doesn't: it warms clusters that need DNS first, asks for
// the endpoints of all others then, and drops what has come before. It asks for
// listeners when its clusters are ready, and from then on for the endpoints of a
// cluster before it reads the next response.
func (s *session) takesUnasked() bool {
	return s.types[envoy.Endpoints].started || s.types[envoy.Listeners].started
}

// planning is one run of plan.
type planning struct {
	*session
	now     time.Time
	since   time.Time
	out     []*flight
	absent  []string // of the type at hand: does not exist, or no longer
	leaving []Ref    // should be taken from the proxy
}

// changes returns the resources of a type to be sent, sorted by name, and notes
// what is to be taken away.
func (p *planning) changes(t envoy.Type) []*envoy.Resource {
	y := &p.types[t]
	p.absent = y.absent
	y.absent = nil
	if len(y.dirty) == 0 {
		return nil
	}
	var set []*envoy.Resource
	for _, name := range slices.Sorted(maps.Keys(y.dirty)) {
		if r := p.change(Ref{t, name}, y.dirty[name]); r != nil {
			set = append(set, r)
		}
	}
	if len(y.dirty) > 64 {
		y.dirty = map[string]reason{} // what a map costs is what it once held
	} else {
		clear(y.dirty)
	}
	return set
}

// change decides on one resource.
func (p *planning) change(ref Ref, why reason) *envoy.Resource {
	g, y := p.gateway, &p.types[ref.Type]
	if g.leaving[ref] != nil {
		p.leaving = append(p.leaving, ref)
	} else {
		delete(p.going, ref)
	}
	rec := y.records[ref.Name]
	if !y.wildcard && rec == nil && why != forced {
		return nil // not asked for
	}
	target, exists := g.target(ref)
	switch {
	case target != nil:
		return p.unlessHad(target, rec, why)
	case why == asked && (rec == nil || rec.sent == ""):
		if e := emptied(ref); e != nil {
			return e
		}
		p.absent = append(p.absent, ref.Name)
	case why == forced && p.types[envoy.Clusters].records[ref.Name] != nil:
		return emptied(ref) // the cluster waits for whatever there is
	case exists && rec != nil && rec.stuck:
		p.drop(ref)
		p.absent = append(p.absent, ref.Name)
	case exists:
		// In quarantine without a good version: what the proxy has stays.
	case rec == nil || rec.sent == "":
	case ref.Type == envoy.Listeners:
		p.drop(ref)
		p.absent = append(p.absent, ref.Name)
	case ref.Type == envoy.Routes && p.sentListeners():
		// The listener that used the table has changed with it. Connections
		// that it drains go on with the table as it was.
	default:
		e := emptied(ref)
		if e == nil || rec.sent != e.Version {
			p.leaving = append(p.leaving, ref)
		} else if why == asked {
			return e
		}
	}
	return nil
}

// unlessHad returns a resource unless the proxy has it or has refused it.
func (p *planning) unlessHad(r *envoy.Resource, rec *record, why reason) *envoy.Resource {
	if p.refused[Ref{r.Type, r.Name}] == r.Version {
		return nil
	}
	if why != changed || rec == nil || rec.sent != r.Version {
		return r
	}
	if rec.acked == r.Version && rec.nonce == 0 {
		// It came back with it: as good as an acknowledgement.
		p.gateway.acknowledged(r, p.gateway.commit, p.now)
	}
	return nil
}

func (p *planning) sentListeners() bool {
	for _, f := range p.out {
		if f.typ == envoy.Listeners && len(f.set)+len(f.removed) > 0 {
			return true
		}
	}
	return false
}

// share puts resources and removals of one type into as few responses as their
// size allows. Envoy's refusal names the culprits and the others are in force,
// unless a resource is marked as to go alone.
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
		if n := len(r.Body()); size > 0 && size+n > maxResponse {
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

// manyEndpoints is from what number on those that are known to be good share
// responses.
const manyEndpoints = 64

// endpoints puts each into a response of its own, but for those that a proxy of the
// Gateway has taken before, where there are many: one that starts gets thousands, and
// would read and answer each. Should it refuse what the others took, all that shared
// the response go alone.
func (p *planning) endpoints(set []*envoy.Resource) {
	var taken, untried []*envoy.Resource
	for _, r := range set {
		e := p.gateway.entries[r.Type][r.Name]
		if e != nil && e.want == r && e.good.Equal(r) {
			taken = append(taken, r)
		} else {
			untried = append(untried, r)
		}
	}
	if len(taken) < manyEndpoints {
		taken, untried = nil, set
	}
	p.single(envoy.Endpoints, untried)
	p.absent = nil // went with these
	p.share(envoy.Endpoints, taken)
}

// single puts each resource into a response of its own, so that a refusal tells
// whose it is and costs nothing else.
func (p *planning) single(t envoy.Type, set []*envoy.Resource) {
	for _, r := range set {
		f := p.response(t)
		f.set = []*envoy.Resource{r}
		target, _ := p.gateway.target(Ref{t, r.Name})
		f.filler = target != r
		p.send(f)
	}
	if len(p.absent) > 0 {
		f := p.response(t)
		f.removed = p.absent
		p.send(f)
	}
}

func (p *planning) response(t envoy.Type) *flight {
	return &flight{typ: t, commit: p.gateway.commit, since: p.since}
}

// send takes a response as sent.
func (p *planning) send(f *flight) {
	y := &p.types[f.typ]
	y.owed = false
	y.pushed += uint64(len(f.set))
	p.nonce++
	f.nonce = p.nonce
	f.live = len(f.set)
	for _, r := range f.set {
		rec := p.record(Ref{f.typ, r.Name})
		p.supersede(rec)
		rec.sent, rec.nonce, rec.stuck = r.Version, f.nonce, false
		if rec.first == 0 {
			rec.first = f.nonce
			rec.early = !y.started
		}
	}
	p.inflight[f.nonce] = f
	if f.typ == envoy.Listeners || f.typ == envoy.Routes {
		p.unanswered = append(p.unanswered, f.nonce)
	}
	p.out = append(p.out, f)
}

// supersede notes that a resource is no longer what the last response made it.
func (s *session) supersede(r *record) {
	f := s.inflight[r.nonce]
	if f == nil {
		return
	}
	f.live--
	if f.live > 0 || f.typ == envoy.Listeners || f.typ == envoy.Routes || len(f.removed) > 0 {
		return
	}
	if len(s.inflight) > maxReplaced {
		delete(s.inflight, f.nonce)
	}
}

// drop forgets a resource that the proxy is told to forget.
func (s *session) drop(ref Ref) {
	y := &s.types[ref.Type]
	r := y.records[ref.Name]
	if r == nil {
		return
	}
	s.supersede(r)
	delete(s.alone, ref)
	delete(s.refused, ref)
	if r.subscribed {
		*r = record{subscribed: true}
	} else {
		delete(y.records, ref.Name)
	}
}

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

// removals sends what may go now: clusters first, then the endpoints and secrets
// that something still subscribes to.
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
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	var gone [envoy.NumTypes][]string
	var empty []*envoy.Resource
	for _, ref := range refs {
		delete(p.going, ref)
		rec := p.types[ref.Type].records[ref.Name]
		if !p.gateway.release(ref, p.now) || rec == nil {
			continue // a quarantine needs it, and says when it no longer does
		}
		if _, exists := p.gateway.target(ref); exists {
			continue
		}
		switch e := emptied(ref); {
		case e == nil:
			p.drop(ref)
			gone[ref.Type] = append(gone[ref.Type], ref.Name)
		case ref.Type == envoy.Endpoints && p.types[envoy.Clusters].records[ref.Name] == nil:
			p.drop(ref) // went with its cluster
		case rec.subscribed:
			empty = append(empty, e)
		}
	}
	p.absent = gone[envoy.Clusters]
	p.share(envoy.Clusters, nil)
	p.absent = nil
	for _, r := range empty {
		p.single(r.Type, []*envoy.Resource{r})
	}
	p.absent = gone[envoy.Secrets]
	p.single(envoy.Secrets, nil)
}

// mayRemove reports whether the proxy has had the time to say what it uses: it
// may have come back with routes that it has not asked for yet.
func (s *session) mayRemove() bool {
	return s.types[envoy.Listeners].started && s.types[envoy.Routes].started ||
		time.Since(s.connected) >= s.gateway.server.grace
}
