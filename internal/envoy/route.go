package envoy

import (
	"net/http"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// RouteName is what Envoy calls the routes of a rule, in its access log too:
// kind/namespace/name/rule/match, and the rule's own name where it has one.
func RouteName(s ir.Source) string {
	n := s.Kind.Name() + "/" + s.Namespace + "/" + s.Name.Name +
		"/" + strconv.Itoa(s.Rule) + "/" + strconv.Itoa(s.Match)
	if s.Title != "" {
		n += "/" + s.Title
	}
	return n
}

// A check says whether Envoy takes a route.
type check func(*routev3.Route) error

// ruleRoutes returns the Envoy routes of a rule of a host: mostly one. With an
// error they answer failure to what the rule matches, or are none where the match
// itself is wrong: any other match would take requests that belong to other
// rules.
func ruleRoutes(r *ir.Rule, domain string, around surroundings, ok check) ([]*routev3.Route, error) {
	match, err := routeMatch(&r.Match)
	if err != nil {
		return nil, err
	}
	routes, err := answer(r, match, domain, around)
	if err == nil && r.Filters.CORS != nil {
		routes, err = withPreflight(r, routes)
	}
	for i := 0; err == nil && i < len(routes); i++ {
		err = ok(routes[i])
	}
	if err == nil {
		return routes, nil
	}
	refused := &routev3.Route{
		Name: RouteName(r.Source), Match: match, Action: direct(failure(r)),
	}
	if ok(refused) != nil {
		return nil, err
	}
	return []*routev3.Route{refused}, err
}

// answer returns routes that have a match and do what the rule says.
func answer(r *ir.Rule, match *routev3.RouteMatch, domain string, around surroundings) ([]*routev3.Route, error) {
	r = withoutPages(r, around.guards)
	filters, err := routeFilters(&r.Filters, around.guards, domain)
	if err != nil {
		return nil, err
	}
	route := &routev3.Route{Name: RouteName(r.Source), Match: match, TypedPerFilterConfig: filters}
	traffic := around.guards.within(&r.Filters).traffic
	r = r.Under(traffic)
	backends, usable := weighted(r.Backends)
	switch {
	case r.Redirect != nil:
		return redirectRoutes(r, route, domain)
	case r.Status != 0:
		route.Action = withBody(r)
	case usable:
		routes, err := forward(r, route, backends, around)
		if err == nil {
			err = setCounts(routes, r.Filters.RateLimits, domain)
			setTraffic(routes, traffic)
		}
		return routes, err
	default:
		// No backend at all, none valid, or all weights zero: the Gateway API
		// says the same of each.
		route.Action = direct(failure(r))
	}
	// A request that goes nowhere needs no changes; its answer may.
	if err := setResponseHeaders(route, r.Filters.ResponseHeaders); err != nil {
		return nil, err
	}
	return []*routev3.Route{route}, nil
}

// withPreflight adds to the routes of a rule with CORS one of the preflights that they don't match.
// The filter answers all that come there, and only where a route leads to a cluster: this one
// has none. For redirects and direct answers it does nothing.
func withPreflight(r *ir.Rule, routes []*routev3.Route) ([]*routev3.Route, error) {
	match, err := preflight(&r.Match)
	if match == nil || err != nil || routes[0].GetRoute() == nil {
		return routes, err
	}
	policy, err := routeFilters(&ir.Filters{CORS: r.Filters.CORS}, guards{}, "")
	return append(routes, &routev3.Route{
		Name: RouteName(r.Source), Match: match, TypedPerFilterConfig: policy,
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: InvalidBackend}}},
	}), err
}

// setCounts has routes count requests. Where there is no backend nothing is counted: Envoy reads
// only of routes to one what is.
func setCounts(routes []*routev3.Route, l *ir.RateLimits, domain string) error {
	limits, err := counts(l, domain)
	for _, r := range routes {
		if action := r.GetRoute(); action != nil {
			action.RateLimits = limits
		}
	}
	return err
}

// failure is the answer of a rule that has nowhere to send requests.
func failure(r *ir.Rule) uint32 {
	if r.Match.Path.Kind.GRPC() {
		return http.StatusServiceUnavailable // UNAVAILABLE to clients of gRPC
	}
	return http.StatusInternalServerError
}

// withBody answers without a backend, with the rule's body.
func withBody(r *ir.Rule) *routev3.Route_DirectResponse {
	action := direct(r.Status)
	if r.Body != "" {
		action.DirectResponse.Body = &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: r.Body}}
	}
	return action
}

// direct answers without a backend and without a body.
func direct(status uint32) *routev3.Route_DirectResponse {
	return &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: status}}
}
