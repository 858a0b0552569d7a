package xds

import "github.com/gatehouse-dev/gatehouse/internal/envoy"

// A leftover is a resource that a proxy may have although it does not say so: Envoy accepts
// the good resources of a response that it refuses, but does not name them when it connects
// again. What is removed meanwhile would stay there for ever. Whoever connects next is told
// to remove it; to a proxy that does not have it this does nothing.

// maxLeftovers is about what a large Gateway has.
const maxLeftovers = 1 << 14

// rememberLeftovers remembers the resources of a session of which it is not known whether the
// proxy has them: those in responses without an answer, and those that it is to be sent anew.
func (g *gateway) rememberLeftovers(s *session) {
	for ref := range s.doubtful {
		if r := s.types[ref.Type].records[ref.Name]; r != nil && r.sent == unknownVersion && s.types[ref.Type].hasWildcard {
			g.addLeftover(ref)
		}
	}
	for _, f := range s.inflight {
		if f.remembered || !s.types[f.typ].hasWildcard {
			continue
		}
		f.remembered = true // do it once, not for each proxy that connects
		for _, r := range f.set {
			g.addLeftover(Ref{f.typ, r.Name})
		}
		for _, name := range f.removed {
			g.addLeftover(Ref{f.typ, name})
		}
	}
}

func (g *gateway) addLeftover(ref Ref) {
	if len(g.leftovers) < maxLeftovers {
		g.leftovers[ref] = true
	}
}

// removeLeftovers makes a session that has just subscribed to all of a type remove the
// leftovers of that type.
func (s *session) removeLeftovers(t envoy.Type) {
	g := s.gateway
	for other := range g.sessions {
		if other != s {
			g.rememberLeftovers(other) // perhaps of the same proxy, and not known yet to have ended
		}
	}
	for ref := range g.leftovers {
		if ref.Type != t {
			continue
		}
		// Also of what there is: it may go before the proxy has been sent it.
		if r := s.record(ref); r.sent == "" {
			s.doubt(ref, r)
		}
	}
}
