package envoy

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	statefulsessionv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

const (
	corsFilter   = "envoy.filters.http.cors"
	routerFilter = "envoy.filters.http.router"
	// edgeSlot is the name of edgeFilter.
	edgeSlot = "envoy.filters.http.header_mutation"
)

// httpFilters is what a connection manager has, in the order in which requests meet the
// filters. Those that a route may need are disabled until it enables them for itself: the
// first route with CORS changes no listener.
func httpFilters(c *ir.Chain) []*hcmv3.HttpFilter {
	if !c.Sharded {
		return allFilters
	}
	slot := slices.IndexFunc(allFilters, func(f *hcmv3.HttpFilter) bool { return f.Name == accessSlot })
	return slices.Insert(slices.Clone(allFilters), slot, tableAccessFilter(c.Table))
}

// allFilters is what every connection manager has.
var allFilters = slices.Concat([]*hcmv3.HttpFilter{
	// The first for requests and so the last for answers: no other filter meets
	// a client's internal headers, nor can leave some behind.
	{
		Name:       edgeSlot,
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: constant(edgeFilter)},
	},
	hostFilter,
	// Behind all others for answers, since these may come from any filter.
	answerHeadersSlot.filter(),
	// It compresses what those below have read, and what they answer themselves.
	compressionSlot.filter(),
	errorPagesSlot.filter(),
	// Before all that may refuse, since a preflight has no credentials and asks
	// for nothing.
	optional(corsFilter, &corsv3.Cors{}),
	// Before all that depends on the route, since the route is chosen anew behind it.
	optional(preroutingSlot, &filterchainv3.FilterChainConfig{}),
	// Before it is known who may pass: these count those too that are turned away, such as who tries
	// passwords.
	optional(earlyWhen, &filterchainv3.FilterChainConfig{}),
}, limitFilters(lateSlots, earlySlots), sharedLimitFilters(true), []*hcmv3.HttpFilter{
	// Before all that reads bodies.
	bodySizeSlot.filter(),
	// Before all that answers or forwards, and before a service is asked.
	optional(accessSlot, &filterchainv3.FilterChainConfig{}),
	// Behind those, since it may depend on who a client is which limits are for it.
	optional(limitsWhen, &filterchainv3.FilterChainConfig{}),
}, limitFilters(0, lateSlots), sharedLimitFilters(false), []*hcmv3.HttpFilter{
	optional(usageSlot, &filterchainv3.FilterChainConfig{}),
	// Behind who may pass, since limits count by who that is and those that are turned away
	// don't count; before a service is asked, so that it doesn't get more than is let through.
	authFilters[0], authFilters[1], authFilters[2],
	// Behind what may refuse: nothing is held in memory for who is turned away.
	bufferSlot.filter(),
	faultSlot.filter(),
	// Whoever is turned away has no session.
	optional(sessionFilter, &statefulsessionv3.StatefulSession{}),
	// Behind all that may refuse, since it is told of the whole request and says where it goes.
	pickerFilters[0], pickerFilters[1],
	{
		Name: routerFilter,
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: constant(&routerv3.Router{
			// Headers such as x-envoy-upstream-service-time are no one's
			// business: clients and backends see HTTP, not Envoy.
			SuppressEnvoyHeaders: true,
		})},
	},
})

// optional is a filter that routes enable.
func optional(name string, m message) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{
		Name:       name,
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: constant(m)},
		Disabled:   true,
	}
}

// guards are what is in force around a level.
type guards struct {
	auth   *ir.Auth       // the service that is asked; nil for none
	access []*ir.Access   // who may pass, by each level that says so, from the outside
	limits *ir.RateLimits // of the innermost level that says so; nil for none
	// traffic is what policies say of how requests pass, by the innermost level that says so; nil for
	// nothing.
	traffic *ir.Traffic
	// sessions says that no backend gets cookies of sessions, also where nobody logs in.
	sessions bool
	// verified says that the table refuses requests of clients without certificates.
	verified bool
	// beside is the filter in front of the slot that has what a divided table says of who may pass;
	// empty where it says nothing, and where the table isn't divided.
	beside string
}

// within adds what a level says.
func (g guards) within(f *ir.Filters) guards {
	if f == nil {
		return g
	}
	if f.Auth != nil {
		g.auth = f.Auth
	}
	if f.Access != nil {
		g.access = append(slices.Clip(g.access), f.Access)
	}
	if f.RateLimits != nil {
		g.limits = f.RateLimits
	}
	if f.Traffic != nil {
		g.traffic = f.Traffic
	}
	return g
}

// routeFilters enables the filters that a level needs, and disables or replaces those of the
// levels around it that would be in force beside them. The domain is that of the host, if the
// level is of one.
func routeFilters(f *ir.Filters, outer guards, domain string) (map[string]*anypb.Any, error) {
	var out map[string]*anypb.Any
	enable := func(name string, m message, err error) error {
		if err != nil {
			return err
		}
		return tell(&out, name, m)
	}
	if f.CORS != nil {
		policy, err := corsPolicy(f.CORS)
		if err := enable(corsFilter, policy, err); err != nil {
			return nil, err
		}
	}
	if f.Access != nil {
		if err := enableAccess(f.Access, outer, enable); err != nil {
			return nil, err
		}
		if outer.beside != "" && len(outer.access) == 1 { // only the table has said something
			put(&out, outer.beside, disabled)
		}
	}
	if f.RateLimits != nil {
		if err := enableLimits(&out, f.RateLimits, outer.limits, domain); err != nil {
			return nil, err
		}
	}
	if f.Traffic != nil {
		if err := enableTraffic(&out, f.Traffic, outer.traffic); err != nil {
			return nil, err
		}
	}
	if f.Auth != nil {
		name, settings, err := routeAuth(f.Auth)
		if err := enable(name, settings, err); err != nil {
			return nil, err
		}
		if len(f.Auth.OnlyService()) > 0 {
			if err := changeRequests(&out, hidesForAuth(f.Auth)...); err != nil {
				return nil, err
			}
		}
		if outer.auth != nil && authFilter(outer.auth) != name {
			if err := enable(authFilter(outer.auth), &routev3.FilterConfig{Disabled: true}, nil); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// tell adds what a filter is told to what others are.
func tell(settings *map[string]*anypb.Any, filter string, m message) error {
	config, err := pack(m)
	if err == nil {
		put(settings, filter, config)
	}
	return err
}

// put is tell of what is packed.
func put(settings *map[string]*anypb.Any, filter string, config *anypb.Any) {
	if *settings == nil {
		*settings = map[string]*anypb.Any{}
	}
	(*settings)[filter] = config
}

// enableAccess fills the slot for who may pass, or switches it off where everybody may.
func enableAccess(a *ir.Access, outer guards, enable func(string, message, error) error) error {
	if a.IsOpen() && !outer.sessions {
		switch {
		case len(outer.access) == 0:
			return nil
		case !outer.verified:
			return enable(accessSlot, &routev3.FilterConfig{Disabled: true}, nil)
		}
	}
	chain, err := access(a, outer)
	if chain == nil && err == nil {
		return nil
	}
	return enable(accessSlot, chain, err)
}
