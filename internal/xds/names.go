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
	most := maxUnknownNames + len(g.removals)
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

// refuse ends the stream of a proxy whose requests are not those of an Envoy.
func (s *session) refuse(format string, args ...any) error {
	err := status.Errorf(codes.ResourceExhausted, format, args...)
	s.gateway.server.refusals.add(refusedNames, "gateway", s.gateway.name.String(), "pod", s.pod, "session", s.id, "error", status.Convert(err).Message())
	return err
}
