package xds

import (
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// What a session remembers of a proxy is by name. An Envoy names what it has been told
// of: what there is, and after a time without a controller also what is gone since. A
// proxy beside which there is somebody else must not fill the memory with other names.
const (
	// maxStrange is how many names there may be beside those that the Gateway has.
	maxStrange = 20_000
	// maxName is more than the longest name of a resource.
	maxName = 2 << 10
)

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
		if n := max(len(name), len(version)); n > maxName {
			return s.refuse("a name or version of a resource has %d bytes; %d is the most", n, maxName)
		}
	}
	g := s.gateway
	most := maxStrange + len(g.leaving)
	n := len(names) + len(has)
	for t := range s.types {
		most += len(g.entries[t])
		n += len(s.types[t].records)
	}
	if n <= most {
		return nil
	}
	// Some may have been counted twice.
	records := s.types[t].records
	fresh := make(map[string]bool, len(names))
	for _, name := range names {
		if records[name] == nil {
			fresh[name] = true
		}
	}
	for name := range has {
		if records[name] == nil {
			fresh[name] = true
		}
	}
	n += len(fresh) - len(names) - len(has)
	if n <= most {
		return nil
	}
	return s.refuse("%d resources are named; %d is the most for this Gateway", n, most)
}

// refuse ends the stream of a proxy that asks for what no Envoy does.
func (s *session) refuse(format string, args ...any) error {
	err := status.Errorf(codes.ResourceExhausted, format, args...)
	s.gateway.server.refusals.add(refusedNames, "gateway", s.gateway.name, "pod", s.pod, "session", s.id, "error", status.Convert(err).Message())
	return err
}
