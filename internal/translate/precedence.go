package translate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// The specification orders all matches that meet on a host:
//
//  1. by the route's own hostname: exact, then the longer wildcard, then none
//     (GatewayRouteHostnameIntersectionPrecedence);
//  2. an exact path; the longest prefix;
//  3. a method; the most headers; the most query parameters;
//  4. the oldest route; the first by namespace/name; the first in the route.
//
// Matches of gRPC have in place of 2 and 3 the longest service, the longest method,
// and the most headers; here too, expressions stand behind exact ones. They go before those
// of HTTP, whatever the hostnames: they match calls only, so that each kind has its own, and
// HTTPRoutes have the calls that no GRPCRoute takes.
//
// It leaves the place of regular expressions open: they stand between exact paths
// and prefixes, the longest first, as with other gateways on Envoy, so that a
// prefix is the fallback of the expressions below it.

// rank packs the kind and the first three criteria into a number; the higher goes first. An
// ir.Rule's values are bounded by the schema: 253 characters of hostname, 1,024
// of path, 16 headers and query parameters.
func rank(hostname string, m *ir.Match) uint64 {
	r := uint64(0)
	put := func(bits, v int) { r = r<<bits | uint64(min(v, 1<<bits-1)) }
	call, exact := 0, 0
	if m.Path.Kind.GRPC() {
		call = 1
	}
	put(1, call)
	if hostname != "" && !strings.HasPrefix(hostname, "*") {
		exact = 1
	}
	put(1, exact)
	put(8, len(hostname))
	if m.Path.Kind.GRPC() {
		exact := m.Path.Kind == ir.Service
		put(1, exactName(exact, m.Path.Value))
		put(12, len(m.Path.Value))
		put(1, exactName(exact && !m.MethodRegex, m.Method))
		put(12, len(m.Method))
		put(8, len(m.Headers))
		return r
	}
	put(2, pathRank(m.Path.Kind))
	put(16, pathLength(m.Path))
	method := 0
	if m.Method != "" {
		method = 1
	}
	put(1, method)
	put(8, len(m.Headers))
	put(8, len(m.Query))
	return r
}

// exactName is 1 where a service or a method is compared as it is.
func exactName(exact bool, name string) int {
	if exact && name != "" {
		return 1
	}
	return 0
}

func pathRank(k ir.PathKind) int {
	switch k {
	case ir.PathExact:
		return 2
	case ir.PathRegex:
		return 1
	case ir.PathPrefix, ir.Service, ir.ServiceRegex:
		return 0
	}
	return 0
}

// pathLength is the length that decides: all exact paths are equal in that a
// request matches one of them at most.
func pathLength(p ir.PathMatch) int {
	if p.Kind == ir.PathExact {
		return 0
	}
	return len(p.Value)
}

// candidate is a rule on its way into a host.
type candidate struct {
	rank  uint64
	entry int // position by age and name of the route
	order int // position in the route
	rule  *ir.Rule
}

func (a candidate) compare(b candidate) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(a.entry, b.entry), cmp.Compare(a.order, b.order))
}

// ordered reports whether the rules of one route are by precedence already, as
// they are where a route has one rule.
func ordered(rules []*ir.Rule) bool {
	return slices.IsSortedFunc(rules, func(a, b *ir.Rule) int {
		return cmp.Compare(rank("", &b.Match), rank("", &a.Match))
	})
}

// merge puts the rules of several routes into the order of precedence.
func merge(entries []HostEntry) []*ir.Rule {
	entries = seniority(entries)
	n := 0
	for i := range entries {
		n += len(entries[i].Rules)
	}
	all := make([]candidate, 0, n)
	for i := range entries {
		for j, r := range entries[i].Rules {
			all = append(all, candidate{rank(entries[i].Hostname, &r.Match), i, j, r})
		}
	}
	slices.SortFunc(all, candidate.compare)
	rules := make([]*ir.Rule, n)
	for i := range all {
		rules[i] = all[i].rule
	}
	return rules
}

// seniority orders entries by age and name of their routes. Of several entries of
// one route, which has them when several of its hostnames meet the listener's in
// the same host, only that with the most specific hostname counts.
func seniority(entries []HostEntry) []HostEntry {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, HostEntry.compare)
	return slices.CompactFunc(entries, func(a, b HostEntry) bool { return a.Route == b.Route })
}

// compare orders entries by age and name of the route, and those of one route by
// specificity of the hostname. Names compare as the specification has it, by
// "{namespace}/{name}", in which a-b/x comes before a/x.
func (e HostEntry) compare(o HostEntry) int {
	if c := e.Created.Compare(o.Created); c != 0 {
		return c
	}
	if e.Route != o.Route {
		return cmp.Or(strings.Compare(e.Route.Name.String(), o.Route.Name.String()), e.Route.Kind.Compare(o.Route.Kind))
	}
	return cmp.Or(cmp.Compare(rank(o.Hostname, &ir.Match{}), rank(e.Hostname, &ir.Match{})), strings.Compare(e.Hostname, o.Hostname))
}
