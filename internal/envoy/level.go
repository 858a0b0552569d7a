package envoy

import (
	"errors"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Filters stand at four levels: a listener's are in the head of its route tables, a
// host's in its virtual host, a rule's in its routes, and a backend's in its share of
// a route. An inner level has the last word.
//
// For HTTP filters that is Envoy's own rule. Headers it changes from the inside to the
// outside unless a table asks for the other order, which tables do where there is
// something outside of routes.

// surroundings is what the levels around a rule do, as far as the rule must know.
type surroundings struct {
	headers bool // are changed
	mirrors bool // get copies of requests
	guards  guards
}

// surround returns what is around the rules of a host.
func surround(h *ir.Host) surroundings {
	s := surroundings{guards: hostGuards(h)}
	for _, f := range []*ir.Filters{h.Around, h.Filters} {
		if f == nil {
			continue
		}
		s.headers = s.headers || changesHeaders(f)
		s.mirrors = s.mirrors || len(f.Mirrors) > 0
		s.guards = s.guards.within(f)
	}
	return s
}

// hostGuards are those of a host before any level has said something.
func hostGuards(h *ir.Host) guards {
	g := guards{sessions: h.Sessions, verified: h.Verified}
	if h.Divided != "" && guardsTable(h.Around) {
		g.beside = TableAccessFilter(h.Divided)
	}
	return g
}

// guardsTable reports whether filters in front of a table say who may pass.
func guardsTable(f *ir.Filters) bool { return f != nil && f.Access != nil && !f.Access.IsOpen() }

// changesHeaders reports whether a level around rules changes headers.
func changesHeaders(f *ir.Filters) bool {
	return f != nil && (f.RequestHeaders != nil || f.ResponseHeaders != nil)
}

// setHostFilters puts the filters of a host onto its virtual host.
func setHostFilters(vh *routev3.VirtualHost, h *ir.Host) (err error) {
	if h.Filters == nil {
		return setHostSessions(vh, h)
	}
	if err := besideRules(h.Filters); err != nil {
		return err
	}
	if vh.TypedPerFilterConfig, err = routeFilters(h.Filters, hostGuards(h).within(h.Around), h.Domain); err != nil {
		return err
	}
	if err = setHostSessions(vh, h); err != nil {
		return err
	}
	if vh.RateLimits, err = counts(h.Filters.RateLimits, h.Domain); err != nil {
		return err
	}
	vh.RequestMirrorPolicies = mirrors(h.Filters.Mirrors)
	if vh.RequestHeadersToAdd, vh.RequestHeadersToRemove, err = headerChanges(h.Filters.RequestHeaders); err != nil {
		return err
	}
	vh.ResponseHeadersToAdd, vh.ResponseHeadersToRemove, err = headerChanges(h.Filters.ResponseHeaders)
	return err
}

// setHostSessions takes cookies of sessions away from the requests of a host, unless the filters that
// decide who may pass do it.
func setHostSessions(vh *routev3.VirtualHost, h *ir.Host) error {
	around := func(f *ir.Filters) bool { return f != nil && f.Access != nil && f.Access.Login != nil }
	if !h.Sessions || h.Filters != nil && h.Filters.Access != nil || around(h.Around) {
		return nil
	}
	chain, err := access(&ir.Access{}, guards{sessions: true})
	if err != nil {
		return err
	}
	return tell(&vh.TypedPerFilterConfig, accessSlot, chain)
}

// setTableFilters puts the filters of a listener onto one of its route tables.
func setTableFilters(m *routev3.RouteConfiguration, f *ir.Filters) (err error) {
	if f == nil {
		return nil
	}
	if err := besideRules(f); err != nil {
		return err
	}
	if f.RateLimits != nil {
		return errors.New("requests can be counted by hosts and rules only")
	}
	if m.TypedPerFilterConfig, err = routeFilters(f, guards{}, ""); err != nil {
		return err
	}
	m.RequestMirrorPolicies = mirrors(f.Mirrors)
	if m.RequestHeadersToAdd, m.RequestHeadersToRemove, err = headerChanges(f.RequestHeaders); err != nil {
		return err
	}
	m.ResponseHeadersToAdd, m.ResponseHeadersToRemove, err = headerChanges(f.ResponseHeaders)
	return err
}

// besideRules refuses what only a rule or a backend can do.
func besideRules(f *ir.Filters) error {
	setsHost := f.RequestHeaders != nil && slices.ContainsFunc(f.RequestHeaders.Set, func(h ir.Header) bool { return isHost(h.Name) })
	if f.Rewrite != nil || setsHost {
		return errors.New("hosts and paths can be rewritten by rules and backends only")
	}
	return nil
}
