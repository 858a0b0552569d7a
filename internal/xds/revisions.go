package xds

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Proxies of another revision of a fleet may stand beside those that serve, see decision 0048. What one revision refuses
// says nothing of the other: it may be another Envoy. So the proxies of each revision have a record of their Gateway for
// themselves, with what is in quarantine there, as if they were connected to another replica. Each begins
// as a copy: the last good version of something is good for those that come too.

// keepRevision is for how long the record of a revision is kept without its proxies: they may connect
// again.
const keepRevision = 10 * time.Minute

// records are those of a Gateway: the one of proxies without a revision first. s.mu is held.
func (s *Server) records(name object.Name) []*gateway {
	g := s.gateways[name]
	if g == nil {
		return nil
	}
	out := []*gateway{g}
	for _, revision := range slices.Sorted(maps.Keys(g.revisions)) {
		out = append(out, g.revisions[revision])
	}
	return out
}

// recordsOf is records for who doesn't hold s.mu.
func (s *Server) recordsOf(name object.Name) []*gateway {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records(name)
}

// ofRevision returns the record of a revision's proxies, a new one if need be; s.mu is held.
func (s *Server) ofRevision(name object.Name, revision string) *gateway {
	g := s.gateway(name)
	if revision == "" {
		return g
	}
	if r := g.revisions[revision]; r != nil {
		return r
	}
	s.dropRevisions(name, time.Now())
	// The most proxies know best what is good.
	like := slices.MaxFunc(s.records(name), func(a, b *gateway) int { return cmp.Compare(a.users, b.users) })
	r := like.copyOf(revision)
	if g.revisions == nil {
		g.revisions = map[string]*gateway{}
	}
	g.revisions[revision] = r
	return r
}

// dropRevisions forgets the revisions of which there have been no proxies for long; s.mu is held.
func (s *Server) dropRevisions(name object.Name, now time.Time) {
	g := s.gateways[name]
	if g == nil {
		return
	}
	for revision, r := range g.revisions {
		if r.users == 0 && now.Sub(r.left) > keepRevision {
			delete(g.revisions, revision)
			r.mu.Lock()
			r.clear(now) // which ends what is in quarantine
			r.mu.Unlock()
			s.reports.add(g)
		}
	}
}

// isUsed reports whether any record of a Gateway is in use; s.mu is held.
func (s *Server) isUsed(name object.Name) bool {
	return slices.ContainsFunc(s.records(name), func(g *gateway) bool { return g.users > 0 })
}

// copyOf returns a record like this one, without sessions and with nothing in quarantine.
func (g *gateway) copyOf(revision string) *gateway {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := newGateway(g.server, g.name)
	out.revision, out.loaded, out.gone, out.commit = revision, g.loaded, g.gone, g.commit
	as := func(e *entry) *entry {
		is := *e
		is.quarantine = nil
		return &is
	}
	for t, entries := range g.entries {
		for name, e := range entries {
			is := as(e)
			is.slot = out.slots[t].take()
			out.entries[t][name] = is
		}
	}
	for ref, l := range g.removals {
		out.removals[ref] = &removal{last: l.last, was: as(l.was)}
	}
	return out
}

// refusing says for each revision whose proxies refuse something what they say of it; nil where none does.
func refusing(all []*gateway) map[string]string {
	var out map[string]string
	for _, g := range all {
		g.mu.Lock()
		rejected := g.rejected()
		connected := len(g.sessions) > 0
		g.mu.Unlock()
		if connected && len(rejected) > 0 {
			if out == nil {
				out = map[string]string{}
			}
			r := rejected[0]
			out[g.revision] = r.Ref.String() + ": " + shortened(r.Message, maxRefusing)
		}
	}
	return out
}

// maxRefusing is how long a message is among those of revisions.
const maxRefusing = 500
