package envoy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	statev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	setstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_filter_state/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Envoy chooses a route first, and by that route the filters that a request meets. A filter that has it choose
// again changes the route, and not those filters: the guards of the second route don't run. So the routes of a
// host with prerouting stand in its table twice. A request meets the filters of the one that it matches as it
// comes, is marked with what these are told, and then matches only routes that tell them the same. Where it is
// another route's requests that it has become one of, whose filters it has not met, the answer is an error.
//
// The first copies lead nowhere: where nothing has the routes chosen again, such as in a connection manager of a former
// version, nobody passes.
//
// The mark is in the filter state of the request, which neither clients nor services can write. It says nothing of what stands
// around routes: both choices are made in one version of the table, since one with such hosts is never divided. Of those
// that are, Envoy takes the newest for each choice.
const (
	preroutingSlot = authPrefix + "listener"
	passedKey      = "gatehouse.passed"
	// passed is how all marks begin.
	passed = "by-"
)

// unrouted are the headers that no service may change before routing: a listener's hosts are not those of
// another, what a path is has been made plain already, and orders to Envoy are nobody's.
const unrouted = `|host|:.*|` + internalHeaders + `.*`

// setPrerouting gives a virtual host the filters that its requests meet before a rule is chosen.
func setPrerouting(vh *routev3.VirtualHost, p *ir.Prerouting) error {
	if p == nil || p.Closed {
		return nil
	}
	var hidden []*mutationv3.HeaderMutation
	for _, a := range p.Auth {
		hidden = append(hidden, hidesForAuth(a)...)
	}
	var filters []*corev3.TypedExtensionConfig
	if len(hidden) > 0 {
		config, err := pack(mutating(hidden...))
		if err != nil {
			return err
		}
		filters = append(filters, named("hide", config))
	}
	for i, a := range p.Auth {
		if a.Backend.IsZero() {
			return errors.New("a filter before routing has no backend")
		}
		ask := ownAuth(a)
		ask.DecoderHeaderMutationRules.DisallowExpression.Regex += unrouted
		config, err := pack(ask)
		if err != nil {
			return err
		}
		filters = append(filters, named("ask."+strconv.Itoa(i), config))
	}
	return tell(&vh.TypedPerFilterConfig, preroutingSlot, chainOf(filters...))
}

// PreroutingCopies is how many routes there are of one on a host with prerouting.
const PreroutingCopies = 3

// routeTwice has the routes of a host chosen before its prerouting, and again behind it.
func routeTwice(vh *routev3.VirtualHost, p *ir.Prerouting) error {
	switch {
	case p == nil:
		return nil
	case p.Closed:
		vh.Routes = []*routev3.Route{{Match: everything(), Action: direct(http.StatusInternalServerError)}}
		return nil
	}
	routes := append(slices.Clip(vh.Routes), &routev3.Route{Match: everything(), Action: direct(http.StatusNotFound)})
	first := make([]*routev3.Route, 0, len(routes))
	second := make([]*routev3.Route, 0, 2*len(routes))
	for _, r := range routes {
		mark, err := markOf(r)
		if err != nil {
			return err
		}
		behind := proto.CloneOf(r)
		if passes(r) || len(r.TypedPerFilterConfig) > 0 {
			behind.Match.FilterState = []*matcherv3.FilterStateMatcher{marked(exactly(mark))}
			second = append(second, behind, &routev3.Route{Name: r.Name, Match: whoPassed(r.Match), Action: direct(refused(r))})
		} else {
			behind.Match = whoPassed(r.Match)
			second = append(second, behind)
		}
		before := nowhere(r)
		if err := tell(&before.TypedPerFilterConfig, preroutingSlot, chainOf(named("mark", constant(&setstatev3.Config{
			OnRequestHeaders: []*statev3.FilterStateValue{state(passedKey, mark)}, ClearRouteCache: true,
		})))); err != nil {
			return err
		}
		first = append(first, before)
	}
	vh.Routes = append(second, first...)
	return nil
}

// nowhere is a route with the filters of another one, by which no request passes.
func nowhere(r *routev3.Route) *routev3.Route {
	r = proto.CloneOf(r)
	to := r.GetRoute()
	switch {
	case to == nil && passes(r):
		r.Action = direct(http.StatusInternalServerError)
	case to == nil:
	case to.GetWeightedClusters() != nil: // whose shares may tell filters something
		for _, c := range to.GetWeightedClusters().GetClusters() {
			c.Name = InvalidBackend
		}
	default:
		to.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: InvalidBackend}
	}
	if to != nil {
		to.RequestMirrorPolicies = nil
	}
	return r
}

// markOf is the mark of requests that have met the filters of a route: the same for all routes that tell theirs the
// same.
func markOf(r *routev3.Route) (string, error) {
	sum := sha256.New()
	add := func(text []byte) {
		sum.Write([]byte(strconv.Itoa(len(text)) + ":"))
		sum.Write(text)
	}
	for _, name := range slices.Sorted(maps.Keys(r.TypedPerFilterConfig)) {
		add([]byte(name))
		add([]byte(r.TypedPerFilterConfig[name].GetTypeUrl()))
		add(r.TypedPerFilterConfig[name].GetValue())
	}
	// Of backends that share requests, the one that is drawn may tell filters something.
	if shared := r.GetRoute().GetWeightedClusters(); slices.ContainsFunc(shared.GetClusters(), func(c *routev3.WeightedCluster_ClusterWeight) bool {
		return len(c.TypedPerFilterConfig) > 0
	}) {
		text, err := wire.Marshal(shared)
		if err != nil {
			return "", err
		}
		add(text)
	}
	return passed + hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// whoPassed is a match of those requests only that have a mark.
func whoPassed(m *routev3.RouteMatch) *routev3.RouteMatch {
	m = proto.CloneOf(m)
	m.FilterState = []*matcherv3.FilterStateMatcher{marked(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: passed}})}
	return m
}

// refused is the answer in place of a route whose filters the request has not met.
func refused(r *routev3.Route) uint32 {
	if r.GetMatch().GetGrpc() != nil {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func marked(by *matcherv3.StringMatcher) *matcherv3.FilterStateMatcher {
	return &matcherv3.FilterStateMatcher{Key: passedKey, Matcher: &matcherv3.FilterStateMatcher_StringMatch{StringMatch: by}}
}

// state sets a text in the filter state of a request; an empty one is not set.
func state(key, format string) *statev3.FilterStateValue {
	return &statev3.FilterStateValue{
		Key:        &statev3.FilterStateValue_ObjectKey{ObjectKey: key},
		FactoryKey: "envoy.string",
		Value: &statev3.FilterStateValue_FormatString{FormatString: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: format},
			}},
			OmitEmptyValues: true,
		}},
		SkipIfEmpty: true,
	}
}

// chainOf fills a slot that is a chain of filters.
func chainOf(filters ...*corev3.TypedExtensionConfig) *filterchainv3.FilterChainConfigPerRoute {
	return &filterchainv3.FilterChainConfigPerRoute{FilterChain: &filterchainv3.FilterChain{Filters: filters}}
}

func named(name string, config *anypb.Any) *corev3.TypedExtensionConfig {
	return &corev3.TypedExtensionConfig{Name: name, TypedConfig: config}
}

func mutating(list ...*mutationv3.HeaderMutation) *headermutationv3.HeaderMutation {
	return &headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{RequestMutations: list}}
}
