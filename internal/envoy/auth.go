package envoy

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	filterchainv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/filter_chain/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Three filters ask authorization services; a route enables one of them. It can
// override the service, and little else: there is one for gRPC, which sends all
// headers to its service, one for HTTP, which sends the few that the specification
// lists, and an empty place for routes that say which headers are sent. Those
// bring a filter of their own, which costs Envoy eight times as much whenever
// the route's table changes.
const (
	authPrefix = "gatehouse.external_auth."
	authGRPC   = authPrefix + "grpc"
	authHTTP   = authPrefix + "http"
	authOwn    = authPrefix + "own"
)

// setCookie is what the client gets of a permission, and the backend never does.
const setCookie = "set-cookie"

// unaltered are the headers that no authorization service may change in a
// request: those that say where it ends, by which the next request on the
// connection, another tenant's perhaps, would begin elsewhere, the one that ends loops,
// and the one that is the client's.
const unaltered = hopHeader + "|" + setCookie + "|connection|content-length|http2-settings|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade"

// foreign are the headers of an HTTP service's answer that are about the answer
// itself. They are not copied unasked: nobody could read a request with the
// Content-Type of another message.
const foreign = unaltered + "|content-.*|date|server|host|:.*"

var isForeign = regexp.MustCompile("^(" + foreign + ")$").MatchString

// permission makes each permission of an HTTP service a 200, since Envoy takes none of the other
// answers of 2xx for one, and would give the client the service's answer for that of the backend. It
// stands between the filter and the service, in the service's cluster, so that it is only asked of
// answers that the service itself has given. If the script fails, the answer is what it was.
var permission = &hcmv3.HttpFilter{
	Name:       "envoy.filters.http.lua",
	ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: constant(&luav3.Lua{DefaultSourceCode: inlined(permissionSource)})},
}

const permissionSource = `function envoy_on_response(handle)
  local headers = handle:headers()
  if string.find(headers:get(":status") or "", "^2%d%d$") then headers:replace(":status", "200") end
end
`

// authFilters stand in every chain.
var authFilters = []*hcmv3.HttpFilter{
	optional(authGRPC, authDefaults(&ir.Auth{Backend: ir.NamedBackend(InvalidBackend), GRPC: true})),
	optional(authHTTP, authDefaults(&ir.Auth{Backend: ir.NamedBackend(InvalidBackend)})),
	optional(authOwn, &filterchainv3.FilterChainConfig{}),
}

// authDefaults is a filter that asks a service, without what only a filter of the
// route's own can say.
func authDefaults(a *ir.Auth) *extauthzv3.ExtAuthz {
	f := &extauthzv3.ExtAuthz{
		TransportApiVersion: corev3.ApiVersion_V3,
		// No request passes where the service can't be asked or fails. 403, the
		// default, would tell the client that it is its fault.
		StatusOnError:     &typev3.HttpStatus{Code: http.StatusServiceUnavailable},
		ValidateMutations: true,
	}
	kept := unaltered
	if a.GRPC {
		f.Services = &extauthzv3.ExtAuthz_GrpcService{GrpcService: grpcAuth(a)}
	} else {
		f.Services = &extauthzv3.ExtAuthz_HttpService{HttpService: httpAuth(a)}
		f.AllowedHeaders = headerNames(append(slices.Clip(a.RequestHeaders), hopHeader))
		if len(a.ResponseHeaders) == 0 {
			kept = foreign
		}
	}
	f.DecoderHeaderMutationRules = &mutationv3.HeaderMutationRules{DisallowExpression: regex(kept)}
	return f
}

// authFilter is the filter that asks a service.
func authFilter(a *ir.Auth) string {
	switch {
	case len(a.RequestHeaders) > 0 || slices.ContainsFunc(a.ResponseHeaders, isForeign):
		return authOwn
	case a.GRPC:
		return authGRPC
	default:
		return authHTTP
	}
}

// routeAuth returns the filter that a route enables, and its settings.
func routeAuth(a *ir.Auth) (filter string, settings message, err error) {
	if a.Backend.IsZero() {
		return "", nil, errors.New("external authorization: no backend")
	}
	filter = authFilter(a)
	if filter == authOwn {
		config, err := pack(ownAuth(a))
		return filter, &filterchainv3.FilterChainConfigPerRoute{FilterChain: &filterchainv3.FilterChain{
			Filters: []*corev3.TypedExtensionConfig{{Name: "envoy.filters.http.ext_authz", TypedConfig: config}},
		}}, err
	}
	check := &extauthzv3.CheckSettings{WithRequestBody: authBody(a)}
	if a.GRPC {
		check.ServiceOverride = &extauthzv3.CheckSettings_GrpcService{GrpcService: grpcAuth(a)}
	} else {
		check.ServiceOverride = &extauthzv3.CheckSettings_HttpService{HttpService: httpAuth(a)}
	}
	return filter, &extauthzv3.ExtAuthzPerRoute{Override: &extauthzv3.ExtAuthzPerRoute_CheckSettings{CheckSettings: check}}, nil
}

// hidesForAuth removes headers from what clients send that only the service may set, as a policy's filter does.
func hidesForAuth(a *ir.Auth) (all []*mutationv3.HeaderMutation) {
	for _, name := range a.OnlyService() {
		all = append(all, removeHeaders(matching(likeHeader(name))))
	}
	return all
}

// ownAuth is a filter of a level's own that asks a service, with all that there is to say.
func ownAuth(a *ir.Auth) *extauthzv3.ExtAuthz {
	f := authDefaults(a)
	f.WithRequestBody = authBody(a)
	if a.GRPC {
		f.AllowedHeaders = headerNames(a.RequestHeaders)
	}
	return f
}

func authBody(a *ir.Auth) *extauthzv3.BufferSettings {
	if a.MaxBody == 0 {
		return nil
	}
	return &extauthzv3.BufferSettings{MaxRequestBytes: a.MaxBody}
}

func grpcAuth(a *ir.Auth) *corev3.GrpcService {
	return &corev3.GrpcService{
		TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
			ClusterName: ClusterName(a.Backend), Authority: a.Authority,
		}},
		InitialMetadata: hopsOfCheck,
		Timeout:         duration(a.Timeout),
	}
}

func httpAuth(a *ir.Auth) *extauthzv3.HttpService {
	copied := headerNames(a.ResponseHeaders)
	if copied == nil {
		copied = &matcherv3.ListStringMatcher{Patterns: []*matcherv3.StringMatcher{matching(".*")}}
	}
	return &extauthzv3.HttpService{
		ServerUri:  authURI(ClusterName(a.Backend), a.Timeout),
		PathPrefix: a.PathPrefix, PathOverride: a.FullPath,
		AuthorizationResponse: &extauthzv3.AuthorizationResponse{
			AllowedUpstreamHeaders: copied,
			// A service that renews its session does so with a permission.
			AllowedClientHeadersOnSuccess: headerNames([]string{setCookie}),
		},
	}
}

// authURI names a service. Envoy wants a URI and doesn't use it: host and path are
// the client's.
func authURI(cluster string, timeout time.Duration) *corev3.HttpUri {
	return &corev3.HttpUri{
		Uri:              "http://service",
		HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: cluster},
		Timeout:          duration(timeout),
	}
}

// headerNames matches header names in whichever case; nil for none.
func headerNames(list []string) *matcherv3.ListStringMatcher {
	if len(list) == 0 {
		return nil
	}
	m := &matcherv3.ListStringMatcher{Patterns: make([]*matcherv3.StringMatcher, len(list))}
	for i, name := range list {
		m.Patterns[i] = exactly(name)
		m.Patterns[i].IgnoreCase = true
	}
	return m
}
