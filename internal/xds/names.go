package xds

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// A session keeps something for each name that a proxy uses. An Envoy uses names that it
// has been sent: of what there is, and after a time without a controller also of what has
// been removed since. Another process in the proxy's place must not fill the memory with
// names of its own.
const (
	// maxUnknownNames is how many names there may be in addition to those that the Gateway has.
	maxUnknownNames = 20_000
	// maxName is more than the longest name of a resource.
	maxName = 512
	// maxVersion is more than the longest version, which is a hash.
	maxVersion = 64
	// maxSessionBytes is how much room unknown names and their versions may take in a
	// session: 300 bytes for each of the most. maxGatewayBytes is the same of all sessions
	// of a Gateway, of which a pod can have eight.
	maxSessionBytes = 6 << 20
	maxGatewayBytes = 48 << 20
)

// cost is what an unknown name is counted for.
func cost(name string) int { return len(name) + maxVersion }

// isKnown reports whether a name is one of the Gateway's own.
func (g *gateway) isKnown(ref Ref) bool {
	return g.entries[ref.Type][ref.Name] != nil || g.removals[ref] != nil
}

// charge counts the room that the name of a new record takes.
func (s *session) charge(r *record, ref Ref) {
	if !s.gateway.isKnown(ref) {
		r.charged = true
		s.charged += cost(ref.Name)
		s.gateway.charged += cost(ref.Name)
	}
}

// forget drops a record. While its response has no answer, which has the name too, it goes on
// counting.
func (s *session) forget(ref Ref) {
	s.forgetSpare(ref)
	y := &s.types[ref.Type]
	r := s.found(ref)
	if r == nil {
		return
	}
	if r.charged {
		if f := s.inflight[r.nonce]; f != nil {
			f.passing += cost(ref.Name)
		} else {
			s.uncharge(cost(ref.Name))
		}
	}
	delete(y.records, ref.Name)
	delete(s.doubtful, ref)
	if y.dirty[ref.Name] != forced && !s.gateway.isKnown(ref) {
		s.unmark(ref) // there is nothing to decide
	}
}

func (s *session) uncharge(bytes int) {
	s.charged -= bytes
	s.gateway.charged -= bytes
}

// land forgets a response that needs no answer any more.
func (s *session) land(f *flight) {
	delete(s.inflight, f.nonce)
	if s.mostInflight > fewEntries && len(s.inflight) == 0 {
		s.inflight, s.mostInflight = map[uint64]*flight{}, 0 // a map never shrinks
	}
	s.uncharge(f.passing)
}

// isClients reports whether a proxy asks for a name only because a client has sent it. It asks for as
// many as clients do, and for all of them at once when it has been without a controller. They are not
// refused, and little is kept of them: the newest spellings, and nothing of what doesn't exist.
func (s *session) isClients(ref Ref, has map[string]string) bool {
	y := &s.types[ref.Type]
	if y.clientNames == nil || !s.gateway.loaded || s.seen(ref) != nil || !y.clientNames(ref.Name) {
		return false
	}
	_, had := has[ref.Name]
	return !had && !s.gateway.isKnown(ref)
}

// isMadeUp reports whether there is nothing by the name that a client has sent, in whatever spelling.
func (s *session) isMadeUp(ref Ref, has map[string]string) bool {
	if !s.isClients(ref, has) {
		return false
	}
	target, exists := s.gateway.target(ref)
	return target == nil && !exists
}

// admits refuses a request whose names, with those that are known, are too many or
// too long.
func (s *session) admits(t envoy.Type, req *discoveryv3.DeltaDiscoveryRequest) error {
	names, has := req.GetResourceNamesSubscribe(), req.GetInitialResourceVersions()
	for _, name := range names {
		if len(name) > maxName {
			return s.refuse("a name of a resource has %d bytes; %d is the most", len(name), maxName)
		}
	}
	for name, version := range has {
		switch {
		case len(name) > maxName:
			return s.refuse("a name of a resource has %d bytes; %d is the most", len(name), maxName)
		case len(version) > maxVersion:
			return s.refuse("a version of a resource has %d bytes; %d is the most", len(version), maxVersion)
		}
	}
	if err := s.admitsBytes(t, names, has); err != nil {
		return err
	}
	g := s.gateway
	most := maxUnknownNames + len(g.removals)
	n := len(names) + len(has)
	for t := range s.types {
		most += len(g.entries[t])
		n += s.types[t].size()
	}
	if n <= most {
		return nil
	}
	// Some may have been counted twice.
	fresh := make(map[string]bool, len(names))
	for _, name := range names {
		if s.seen(Ref{t, name}) == nil && !s.isClients(Ref{t, name}, has) {
			fresh[name] = true
		}
	}
	for name := range has {
		if s.seen(Ref{t, name}) == nil {
			fresh[name] = true
		}
	}
	n += len(fresh) - len(names) - len(has)
	if n <= most {
		return nil
	}
	return s.refuse("%d resources are named; %d is the most for this Gateway", n, most)
}

// admitsBytes refuses names that take too much room, with those that are there already.
func (s *session) admitsBytes(t envoy.Type, names []string, has map[string]string) error {
	fresh := 0
	count := func(name string) {
		if s.types[t].records[name] == nil && !s.gateway.isKnown(Ref{t, name}) {
			fresh += cost(name)
		}
	}
	for _, name := range names {
		if _, twice := has[name]; !twice && !s.isClients(Ref{t, name}, has) {
			count(name)
		}
	}
	for name := range has {
		count(name)
	}
	switch {
	case fresh == 0:
	case s.charged+fresh > maxSessionBytes:
		return s.refuse("the names of unknown resources take %d bytes; %d is the most for a proxy", s.charged+fresh, maxSessionBytes)
	case s.gateway.charged+fresh > maxGatewayBytes:
		return s.refuse("the names of unknown resources take %d bytes; %d is the most for the proxies of a Gateway", s.gateway.charged+fresh, maxGatewayBytes)
	}
	return nil
}

// refuse ends the stream of a proxy whose requests are not those of an Envoy.
func (s *session) refuse(format string, args ...any) error {
	err := status.Errorf(codes.ResourceExhausted, format, args...)
	s.gateway.server.refusals.add(refusedNames, "gateway", s.gateway.name.String(), "pod", s.pod, "session", s.id, "error", status.Convert(err).Message())
	return err
}
