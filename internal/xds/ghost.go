package xds

import "github.com/gatehouse-dev/gatehouse/internal/envoy"

// A ghost is a cluster or listener that a proxy may have without saying so: of a
// response that it refuses, Envoy takes the good ones and doesn't count them
// among what it has when it comes back. What is removed meanwhile would stay for
// ever. Whoever connects next is told to remove it; if it never had it, that
// does nothing.

// maxGhosts bounds them by what a large Gateway has.
const maxGhosts = 1 << 14

// depart remembers the resources of an ended session whose fate is open.
func (g *gateway) depart(s *session) {
	g.haunt(s)
	for t := range s.types {
		if !s.types[t].hasWildcard {
			continue
		}
		for name, r := range s.types[t].records {
			if r.sent == unknown {
				g.addGhost(Ref{envoy.Type(t), name}) //nolint:gosec // an index of the table
			}
		}
	}
}

// haunt remembers what is in a session's responses without an answer.
func (g *gateway) haunt(s *session) {
	for _, f := range s.inflight {
		if f.haunted || !s.types[f.typ].hasWildcard {
			continue
		}
		f.haunted = true // once, however many proxies connect
		for _, r := range f.set {
			g.addGhost(Ref{f.typ, r.Name})
		}
		for _, name := range f.removed {
			g.addGhost(Ref{f.typ, name})
		}
	}
}

func (g *gateway) addGhost(ref Ref) {
	if len(g.ghosts) < maxGhosts {
		g.ghosts[ref] = true
	}
}

// exorcise makes a session that has just asked for all of a type remove the
// ghosts there.
func (s *session) exorcise(t envoy.Type) {
	g := s.gateway
	for other := range g.sessions {
		if other != s {
			g.haunt(other) // the same proxy, perhaps, whose end has not been noticed
		}
	}
	for ref := range g.ghosts {
		if r, _ := g.target(ref); ref.Type != t || r != nil {
			continue
		}
		if r := s.record(ref); r.sent == "" {
			r.sent = unknown
		}
	}
}
