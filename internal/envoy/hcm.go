package envoy

import (
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	fileaccesslogv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The limits for clients that nobody knows: those of Envoy's guide for edge
// proxies.
const (
	bufferLimit      = 32 << 10
	http2Streams     = 100
	http2StreamBytes = 64 << 10
	http2ConnBytes   = 1 << 20
	headersTimeout   = 30 * time.Second
)

// ads is where all that is named here comes from: the stream that brought the
// name.
func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
}

// connectionManager returns the HTTP connection manager in front of a table.
//
// Anything that changes here drains the chain's connections, so nothing in it
// depends on routes.
func connectionManager(table, statPrefix string, o Options) (*anypb.Any, error) {
	m := &hcmv3.HttpConnectionManager{
		StatPrefix: statPrefix,
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
			ConfigSource: ads(), RouteConfigName: table,
		}},
		HttpFilters: httpFilters,

		// We are the edge: the peer is the client. Its address is appended to
		// X-Forwarded-For by edgeRequests.
		UseRemoteAddress:              wrapperspb.Bool(true),
		SkipXffAppend:                 true,
		EarlyHeaderMutationExtensions: edgeRequests,
		// No address is internal. Clients with a private address must not be
		// able to set timeouts and retries by x-envoy headers.
		InternalAddressConfig: &hcmv3.HttpConnectionManager_InternalAddressConfig{CidrRanges: noAddresses},

		// Dot segments would lead around prefixes. Doubled and escaped slashes
		// stay: the Gateway API gives them no meaning, and they have one for
		// many backends (a URL in a path, a name with a slash).
		NormalizePath: wrapperspb.Bool(true),

		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,

		// Headers come at once from every honest client. Bodies may take their
		// time, bounded by the stream's idle timeout (5 min by default); idle
		// connections are closed after an hour, also by default.
		RequestHeadersTimeout: durationpb.New(headersTimeout),

		Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
			MaxConcurrentStreams:        wrapperspb.UInt32(http2Streams),
			InitialStreamWindowSize:     wrapperspb.UInt32(http2StreamBytes),
			InitialConnectionWindowSize: wrapperspb.UInt32(http2ConnBytes),
			AllowConnect:                true, // WebSockets over HTTP/2 (RFC 8441)
		},
		UpgradeConfigs: []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
	}
	if o.AccessLog != "" {
		log, err := pack(&fileaccesslogv3.FileAccessLog{Path: o.AccessLog})
		if err != nil {
			return nil, err
		}
		m.AccessLog = []*accesslogv3.AccessLog{{
			Name:       "envoy.access_loggers.file",
			ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: log},
		}}
	}
	return pack(m)
}

// noAddresses is a range that no client can have. An empty list would mean the
// private ranges to some releases of Envoy.
var noAddresses = []*corev3.CidrRange{{AddressPrefix: "255.255.255.255", PrefixLen: wrapperspb.UInt32(32)}}
