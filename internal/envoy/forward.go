package envoy

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// InvalidBackend names a cluster that never exists. It gets the share of the
// requests whose backend can't be used, which Envoy then answers with 500, or
// UNAVAILABLE for gRPC, as the Gateway API demands. Names of real clusters have a
// slash.
const InvalidBackend = "invalid"

// weighted returns the backends that get requests, and whether one of them can
// be used.
func weighted(all []ir.WeightedBackend) (some []*ir.WeightedBackend, usable bool) {
	for i := range all {
		if b := &all[i]; b.Weight > 0 {
			some = append(some, b)
			usable = usable || !b.Backend.IsZero()
		}
	}
	return some, usable
}

// forward completes a route that sends requests to backends.
func forward(r *ir.Rule, route *routev3.Route, backends []*ir.WeightedBackend, around surroundings) ([]*routev3.Route, error) {
	if len(r.Filters.Mirrors) > 0 || around.mirrors || repeats(r.Retry) {
		route.RequestBodyBufferLimit = wrapperspb.UInt64(replayableBody)
	}
	if err := boundAnswer(&route.TypedPerFilterConfig, r.Timeouts, r.Retry); err != nil {
		return nil, err
	}
	if len(backends) == 1 {
		err := toOne(r, route, backends[0])
		return []*routev3.Route{route}, err
	}
	for _, b := range backends {
		// Envoy makes a cluster's changes before those around the route.
		if rewritesPath(&b.Filters) || around.headers && changes(b) {
			return split(r, route, backends)
		}
	}
	err := toSeveral(r, route, backends)
	return []*routev3.Route{route}, err
}

// toOne completes a route to one backend. The backend's filters become the
// route's: fewer bytes, and a route can say what a cluster weight can't.
func toOne(r *ir.Rule, route *routev3.Route, b *ir.WeightedBackend) error {
	action, err := routeAction(r)
	if err != nil {
		return err
	}
	action.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: ClusterName(b.Backend)}
	if err := rewrite(action, r.Match.Path, &r.Filters, &b.Filters); err != nil {
		return err
	}
	if err := setSession(&route.TypedPerFilterConfig, b.Session); err != nil {
		return err
	}
	if err := setPicker(&route.TypedPerFilterConfig, b.Backend); err != nil {
		return err
	}
	route.Action = &routev3.Route_Route{Route: action}
	if err := setRequestHeaders(route, then(r.Filters.RequestHeaders, b.Filters.RequestHeaders)); err != nil {
		return err
	}
	return setResponseHeaders(route, then(r.Filters.ResponseHeaders, b.Filters.ResponseHeaders))
}

// toSeveral completes a route to backends by weight.
//
// Envoy makes a cluster's changes before the route's, so that the route would
// have the last word. Where a backend has filters, the rule's changes therefore
// move down to all of them.
func toSeveral(r *ir.Rule, route *routev3.Route, backends []*ir.WeightedBackend) error {
	action, err := routeAction(r)
	if err != nil {
		return err
	}
	rule, shared := &r.Filters, &ir.Filters{}
	if !slices.ContainsFunc(backends, changes) {
		rule, shared = shared, rule
	}
	var total uint64
	clusters := make([]*routev3.WeightedCluster_ClusterWeight, 0, len(backends))
	for _, b := range backends {
		total += uint64(b.Weight)
		c, err := clusterWeight(rule, b)
		if err != nil {
			return err
		}
		if b.Backend.IsZero() && !r.Match.Path.Kind.GRPC() {
			// For gRPC it is Envoy's default, 503.
			action.ClusterNotFoundResponseCode = routev3.RouteAction_INTERNAL_SERVER_ERROR
		}
		clusters = append(clusters, c)
	}
	if total > math.MaxUint32 {
		return fmt.Errorf("the weights of the backends add up to %d, more than %d", total, uint32(math.MaxUint32))
	}
	action.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{
		WeightedClusters: &routev3.WeightedCluster{Clusters: clusters},
	}
	if rewritesPath(&r.Filters) {
		if err := rewritePath(action, r.Match.Path, r.Filters.Rewrite.Path); err != nil {
			return err
		}
	}
	if err := rewriteHost(action, shared, &ir.Filters{}); err != nil {
		return err
	}
	route.Action = &routev3.Route_Route{Route: action}
	if err := setRequestHeaders(route, shared.RequestHeaders); err != nil {
		return err
	}
	return setResponseHeaders(route, shared.ResponseHeaders)
}

// changes reports whether a backend has filters of its own.
func changes(b *ir.WeightedBackend) bool {
	return b.Filters.RequestHeaders != nil || b.Filters.ResponseHeaders != nil || b.Filters.Rewrite != nil
}

func clusterWeight(rule *ir.Filters, b *ir.WeightedBackend) (*routev3.WeightedCluster_ClusterWeight, error) {
	c := &routev3.WeightedCluster_ClusterWeight{Name: ClusterName(b.Backend), Weight: wrapperspb.UInt32(b.Weight)}
	if b.Backend.IsZero() {
		c.Name = InvalidBackend
	}
	host, err := hostname(rule, &b.Filters)
	if err != nil {
		return nil, err
	}
	if host != "" {
		c.HostRewriteSpecifier = &routev3.WeightedCluster_ClusterWeight_HostRewriteLiteral{HostRewriteLiteral: host}
	}
	if err := setSession(&c.TypedPerFilterConfig, b.Session); err != nil {
		return nil, err
	}
	if err := setPicker(&c.TypedPerFilterConfig, b.Backend); err != nil {
		return nil, err
	}
	if err := setRequestHeaders(c, then(rule.RequestHeaders, b.Filters.RequestHeaders)); err != nil {
		return nil, err
	}
	return c, setResponseHeaders(c, then(rule.ResponseHeaders, b.Filters.ResponseHeaders))
}

// split makes a route for each backend, which take the rule's requests by
// chance: Envoy can't rewrite a path by weighted cluster, nor give it the last word. It draws one random
// number a request and compares it with the fraction of each route, so growing
// fractions cut the requests into shares. They are exact to a millionth.
func split(r *ir.Rule, template *routev3.Route, backends []*ir.WeightedBackend) ([]*routev3.Route, error) {
	var total, sum uint64
	for _, b := range backends {
		total += uint64(b.Weight)
	}
	routes := make([]*routev3.Route, 0, len(backends))
	for i, b := range backends {
		sum += uint64(b.Weight)
		route := &routev3.Route{
			Name:                   template.Name,
			Match:                  template.Match,
			TypedPerFilterConfig:   maps.Clone(template.TypedPerFilterConfig),
			RequestBodyBufferLimit: template.RequestBodyBufferLimit,
		}
		// The last one takes what is left.
		if i < len(backends)-1 {
			route.Match = upTo(template.Match, millionths(sum, total))
		}
		if b.Backend.IsZero() {
			route.Action = direct(failure(r))
			if err := setResponseHeaders(route, r.Filters.ResponseHeaders); err != nil {
				return nil, err
			}
		} else if err := toOne(r, route, b); err != nil {
			return nil, err
		}
		routes = append(routes, route)
	}
	return routes, nil
}

// upTo narrows a match to a fraction of the requests.
func upTo(m *routev3.RouteMatch, millionths uint32) *routev3.RouteMatch {
	return &routev3.RouteMatch{
		PathSpecifier:   m.PathSpecifier,
		Headers:         m.Headers,
		QueryParameters: m.QueryParameters,
		Grpc:            m.Grpc,
		RuntimeFraction: &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{
			Numerator: millionths, Denominator: typev3.FractionalPercent_MILLION,
		}},
	}
}

// millionths returns part/whole in millionths, rounded.
func millionths(part, whole uint64) uint32 {
	return uint32(math.Round(float64(part) / float64(whole) * 1e6))
}

// routeAction returns what routes to backends have in common.
func routeAction(r *ir.Rule) (*routev3.RouteAction, error) {
	a := &routev3.RouteAction{RequestMirrorPolicies: mirrors(r.Filters.Mirrors)}
	setTimeouts(a, r.Timeouts, r.Retry)
	if r.Match.Path.Kind.GRPC() && (r.Timeouts == nil || r.Timeouts.Idle == nil) {
		// Streams may be silent for as long as they like; whether the other side is
		// still there is for keepalives to find out.
		a.IdleTimeout = &durationpb.Duration{}
	}
	hostOf(a, &r.Filters)
	err := setRetry(a, r.Retry, r.Timeouts)
	return a, err
}
