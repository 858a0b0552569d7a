package envoy

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// virtualHosts is the number of RouteConfiguration.virtual_hosts.
const virtualHosts = 2

// RuleError says why a rule can't be given to Envoy as it is. The requests of
// its match are answered with 500, gRPC's with UNAVAILABLE, or, where it is the
// match itself that is wrong, fall to the rules after it.
type RuleError struct {
	Source ir.Source
	Err    error
}

// Error names the rule and what is wrong with it.
func (e RuleError) Error() string {
	return fmt.Sprintf("%s %s rule %d: %v", e.Source.Kind, e.Source.Name, e.Source.Rule, e.Err)
}

// Unwrap returns what is wrong with the rule.
func (e RuleError) Unwrap() error { return e.Err }

// HostPart returns a host as one virtual_hosts field of a RouteConfiguration.
//
// A rule that Envoy would refuse is reported and costs only itself. The part is
// nil only where the host's domain itself is at fault, which is then reported
// for every rule. A path that no rule matches is answered with 404 by Envoy.
func HostPart(h *ir.Host) (*Part, []RuleError) {
	vh := &routev3.VirtualHost{
		// Envoy needs a name for statistics that we have not. The domain says which host it is, and to say it twice
		// would be a tenth of what an edit sends.
		Name: "h",
		// Without the port: the table ignores it.
		Domains: []string{h.Domain},
	}
	if h.Misdirected {
		vh.Routes = []*routev3.Route{{
			Match:  everything(),
			Action: direct(http.StatusMisdirectedRequest),
		}}
	}
	if err := cmp.Or(setHostFilters(vh, h), setPrerouting(vh, h.Prerouting)); err != nil {
		return closedHost(h, err)
	}
	guard, errs := setRoutes(vh, h, (*routev3.Route).ValidateAll)
	body, err := hostField(vh)
	if err != nil {
		// Something in it can't be marshalled, such as text that is not UTF-8,
		// which the proto rules don't say. Rare enough to look for it only now.
		guard, errs = setRoutes(vh, h, marshals)
		body, err = hostField(vh)
	}
	if err != nil && (h.Filters != nil || h.Prerouting != nil) {
		return closedHost(h, err)
	}
	if err != nil {
		errs = make([]RuleError, 0, len(h.Rules))
		for _, r := range h.Rules {
			errs = append(errs, RuleError{Source: r.Source, Err: fmt.Errorf("hostname %q: %w", h.Domain, err)})
		}
		return nil, errs
	}
	return &Part{
		Name: h.Domain, Hash: Sum(body), Body: body, Guard: guard,
		headers: changesHeaders(h.Filters), nobody: !slices.ContainsFunc(vh.Routes, passes),
	}, errs
}

// passes reports whether requests pass by a route, to a backend or elsewhere.
func passes(r *routev3.Route) bool {
	answer := r.GetDirectResponse()
	return answer == nil || answer.GetStatus() < http.StatusBadRequest
}

// closedHost answers for a host whose own filters can't be given to Envoy: no request
// may pass without them.
func closedHost(h *ir.Host, why error) (*Part, []RuleError) {
	closed := &ir.Host{Domain: h.Domain, Rules: make([]*ir.Rule, len(h.Rules))}
	errs := make([]RuleError, len(h.Rules))
	for i, r := range h.Rules {
		closed.Rules[i] = Closed(r)
		errs[i] = RuleError{Source: r.Source, Err: why}
	}
	part, more := HostPart(closed)
	return part, append(errs, more...)
}

// Unserved answers for a virtual host that is held back with 503: without an answer of its own, another host with a wildcard
// might answer in its place.
func Unserved(p *Part) *Part {
	vh := &routev3.VirtualHost{
		Name: "h", Domains: []string{p.Name},
		Routes: []*routev3.Route{{Match: everything(), Action: direct(http.StatusServiceUnavailable)}},
	}
	body, err := hostField(vh)
	if err != nil {
		panic(fmt.Sprintf("envoy: host %q: %v", p.Name, err)) // the name is that of a host that could be given to Envoy
	}
	return &Part{Name: p.Name, Hash: Sum(body), Body: body, Guard: guardOfHost(vh), nobody: true}
}

// Closed returns a rule that refuses what a rule matches.
func Closed(r *ir.Rule) *ir.Rule {
	return &ir.Rule{Source: r.Source, Match: r.Match, Status: failure(r)}
}

// setRoutes gives a virtual host the routes of its rules, and returns what guards them.
func setRoutes(vh *routev3.VirtualHost, h *ir.Host, ok check) (guard Guard, errs []RuleError) {
	if h.Misdirected {
		return guardOfHost(vh), nil
	}
	around := surround(h)
	vh.Routes = make([]*routev3.Route, 0, len(h.Rules))
	for _, r := range h.Rules {
		routes, err := ruleRoutes(r, h.Domain, around, ok)
		if err != nil {
			errs = append(errs, RuleError{Source: r.Source, Err: err})
		}
		vh.Routes = append(vh.Routes, routes...)
	}
	unmatched(vh, around.guards.traffic)
	// A request that a route answers behind prerouting has met the filters of that route.
	guard = guardOfHost(vh)
	if err := routeTwice(vh, h.Prerouting); err != nil {
		vh.Routes = []*routev3.Route{{Match: everything(), Action: direct(http.StatusInternalServerError)}}
		for _, r := range h.Rules {
			errs = append(errs, RuleError{Source: r.Source, Err: err})
		}
		return guardOfHost(vh), errs
	}
	if h.Prerouting != nil && h.Prerouting.Closed {
		guard = guardOfHost(vh)
	}
	return guard, errs
}

func marshals(r *routev3.Route) error {
	_, err := marshal(r)
	return err
}

// hostField checks the host without its routes, which have been checked one by
// one, and marshals it with them.
func hostField(vh *routev3.VirtualHost) ([]byte, error) {
	routes := vh.Routes
	vh.Routes = nil
	if err := vh.ValidateAll(); err != nil {
		return nil, err
	}
	vh.Routes = routes
	return field(virtualHosts, vh)
}
