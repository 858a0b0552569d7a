package envoy

import (
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	setmetadatav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_metadata/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Who may pass by all of a divided table would stand in each of its shards. It comes by itself
// instead, by extension discovery, to a filter that only connection managers of divided tables
// have, in front of the slot. A shard enables the filter and fills the slot with a check that it
// has looked at the request: while a proxy has nothing for the filter, or a connection manager
// doesn't have it, nobody passes. A level inside of the table that says itself who may pass
// disables both for its requests, so that what stands beside the shards may change without it.

const (
	tableAccessPrefix = accessSlot + "/"
	// accessArrived is the check. What the filter leaves for it is under the same name.
	accessArrived = "arrived"
	arrivedKey    = accessSlot + "." + accessArrived
)

// TableAccessFilter is what the filter for who may pass by a divided table is called, and its configuration.
func TableAccessFilter(table string) string { return tableAccessPrefix + table }

// AccessTable returns the table whose filter has a name; false where it is no such filter.
func AccessTable(filter string) (table string, is bool) {
	return strings.CutPrefix(filter, tableAccessPrefix)
}

// AccessBeside returns the filter that stands beside a route configuration; empty for one that is no shard.
func AccessBeside(configuration string) string {
	if table, _, is := strings.CutLast(configuration, "/"); is {
		return TableAccessFilter(table)
	}
	return ""
}

// leavesTable reports whether settings of a level inside of a table disable the filter.
func leavesTable(settings map[string]*anypb.Any) bool {
	for name := range settings {
		if _, is := AccessTable(name); is {
			return true
		}
	}
	return false
}

// tableAccessFilter is the filter in a connection manager. It does nothing until it has been told
// something, and the check refuses everybody then.
func tableAccessFilter(table string) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{
		Name: TableAccessFilter(table), Disabled: true,
		ConfigType: &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
			ConfigSource: ads(), DefaultConfig: noTableAccess, TypeUrls: []string{noTableAccess.TypeUrl},
		}},
	}
}

var noTableAccess = constant(&filterchainv3.FilterChainConfig{})

// TableAccess returns who may pass by a divided table. The version before doesn't stand in for one
// that a proxy refuses.
func TableAccess(table string, a *ir.Access) (*Resource, error) {
	name := TableAccessFilter(table)
	inner, err := access(a, guards{})
	if err != nil {
		return nil, fmt.Errorf("filter %q: %w", name, err)
	}
	chain := &filterchainv3.FilterChain{Filters: []*corev3.TypedExtensionConfig{{Name: accessArrived, TypedConfig: arrives}}}
	chain.Filters = append(chain.Filters, inner.GetFilterChain().GetFilters()...)
	config, err := pack(&filterchainv3.FilterChainConfig{DefaultFilterChain: chain})
	if err != nil {
		return nil, fmt.Errorf("filter %q: %w", name, err)
	}
	r, err := resource(Extensions, name, &corev3.TypedExtensionConfig{Name: name, TypedConfig: config})
	if err != nil {
		return nil, fmt.Errorf("filter %q: %w", name, err)
	}
	return r.Guarded(Guard{{By: xxhash.Sum64(config.Value)}}), nil
}

// noAccess answers a subscription to the filter of a table in front of which nobody says who may
// pass, and takes the place of what a proxy refuses.
func noAccess(name string) *Resource {
	r, err := resource(Extensions, name, &corev3.TypedExtensionConfig{Name: name, TypedConfig: noTableAccess})
	if err != nil {
		panic(fmt.Sprintf("envoy: filter %q: %v", name, err))
	}
	return r
}

// arrives leaves a word that the filter has looked at a request.
var arrives = constant(&setmetadatav3.Config{Metadata: []*setmetadatav3.Metadata{{
	MetadataNamespace: arrivedKey,
	Value:             &structpb.Struct{Fields: map[string]*structpb.Value{accessArrived: structpb.NewBoolValue(true)}},
}}})

// checkArrived fills the slot with the check.
var checkArrived = constant(&filterchainv3.FilterChainConfigPerRoute{FilterChain: &filterchainv3.FilterChain{
	Filters: []*corev3.TypedExtensionConfig{{Name: accessArrived, TypedConfig: constant(allow(map[string]*rbacconfigv3.Policy{
		accessArrived: meets([]*rbacconfigv3.Principal{metadata(arrivedKey, []string{accessArrived}, &matcherv3.ValueMatcher{
			MatchPattern: &matcherv3.ValueMatcher_BoolMatch{BoolMatch: true},
		})}, nil),
	}))}},
}})

// setShardAccess has a shard ask who may pass by the table.
func setShardAccess(m *routev3.RouteConfiguration, table string, a *ir.Access) error {
	put(&m.TypedPerFilterConfig, TableAccessFilter(table), here)
	put(&m.TypedPerFilterConfig, accessSlot, checkArrived)
	if a.Login == nil || a.Login.Backend.IsZero() {
		return nil
	}
	return tell(&m.TypedPerFilterConfig, loginSecretsOf, loginSecrets(a.Login))
}

// loginSecretsOf is the name of no filter: Envoy reads what is for it, and that is all.
const loginSecretsOf = accessSlot + ".secrets"

// loginSecrets has Envoy ask for the secrets of a Login. It does so for what comes with a route
// configuration, and not for a filter that comes by itself to a listener which is there already.
func loginSecrets(l *ir.Login) *oauth2v3.OAuth2PerRoute {
	return &oauth2v3.OAuth2PerRoute{Config: &oauth2v3.OAuth2Config{
		TokenEndpoint:         tokenEndpoint(l, "https://issuer.invalid/"),
		AuthorizationEndpoint: "https://issuer.invalid/",
		Credentials: &oauth2v3.OAuth2Credentials{
			ClientId:       "nobody",
			TokenSecret:    generic(l.Session.ClientSecret()),
			TokenFormation: &oauth2v3.OAuth2Credentials_HmacSecret{HmacSecret: generic(l.Session.Key())},
		},
		RedirectUri:         "https://issuer.invalid/",
		RedirectPathMatcher: exactPath("/"),
		SignoutPath:         exactPath("/"),
	}}
}
