package envoy

import (
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	xffv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/original_ip_detection/xff/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// ads is where all that is named here comes from: the stream that brought the
// name.
func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
}

// connectionManager returns the HTTP connection manager of a chain.
//
// Anything that changes here drains the chain's connections, so nothing in it
// depends on routes.
func connectionManager(l *ir.Listener, c *ir.Chain) (*anypb.Any, error) {
	limit := limits(l.Client.Limits)
	m := &hcmv3.HttpConnectionManager{
		StatPrefix:  l.Name,
		HttpFilters: httpFilters(c),

		// We are the edge: the peer is the client, or a proxy that is trusted. Its
		// address is appended to X-Forwarded-For by onArrival, before the hops
		// are counted here, and so is one more of them.
		UseRemoteAddress: wrapperspb.Bool(true),
		SkipXffAppend:    true,
		// No address is internal. Clients with a private address must not be
		// able to set timeouts and retries by x-envoy headers.
		InternalAddressConfig: &hcmv3.HttpConnectionManager_InternalAddressConfig{CidrRanges: noAddresses},

		// Dot segments would lead around prefixes, and so would slashes in disguise:
		// what the backend gets is what routes and their guards have seen.
		NormalizePath:                wrapperspb.Bool(true),
		MergeSlashes:                 mergeSlashes(l.Client.Paths),
		PathWithEscapedSlashesAction: escapedSlashes[l.Client.Paths.Escaped],

		// DNS and many backends take example.com. for example.com: it has the routes and
		// guards of that, and not those of a wildcard beside it.
		StripTrailingHostDot: true,

		// The scheme in HTTP/2 says how the backend is spoken to: servers refuse one
		// that differs from the connection. How the client came is for
		// X-Forwarded-Proto to say.
		SchemeHeaderTransformation: &corev3.SchemeHeaderTransformation{MatchUpstream: true},

		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,
		LocalReplyConfig:           localReplies,

		MaxRequestHeadersKb:   wrapperspb.UInt32(limit.HeadersKiB),
		RequestHeadersTimeout: durationpb.New(limit.HeadersTimeout),
		StreamIdleTimeout:     durationpb.New(streamIdleTimeout),
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{
			MaxHeadersCount: wrapperspb.UInt32(limit.Headers),
			IdleTimeout:     durationpb.New(limit.IdleTimeout),
		},

		Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
			MaxConcurrentStreams:        wrapperspb.UInt32(limit.Streams),
			InitialStreamWindowSize:     wrapperspb.UInt32(streamWindowBytes),
			InitialConnectionWindowSize: wrapperspb.UInt32(connWindowBytes),
			ConnectionKeepalive: &corev3.KeepaliveSettings{
				Interval: durationpb.New(pingInterval), Timeout: durationpb.New(pingTimeout),
			},
		},
		// Over HTTP/1.1 only. WebSockets over HTTP/2 (RFC 8441) have no Sec-WebSocket-Key, which
		// backends want and Envoy doesn't make up: clients see that there are none, and open a
		// connection of HTTP/1.1 for them.
		UpgradeConfigs: []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
	}
	if l.Client.HTTP10 {
		m.HttpProtocolOptions = http10
	}
	further := findRoutes(m, l, c)
	if l.Hop != "" {
		further = append(further, noteHop(l.Hop))
	}
	var err error
	if m.EarlyHeaderMutationExtensions, err = onArrival(l.Client, further...); err != nil {
		return nil, err
	}
	tellClients(m, c.TLS)
	if l.Client.TrustedHops > 0 {
		m.XffNumTrustedHops = l.Client.TrustedHops + 1
	}
	if len(l.Client.TrustedAddresses) > 0 {
		if err := detectClient(m, l.Client.TrustedAddresses); err != nil {
			return nil, err
		}
	}
	if limit.Duration > 0 {
		m.CommonHttpProtocolOptions.MaxConnectionDuration = durationpb.New(limit.Duration)
	}
	if c.HTTP3 {
		if err := serveHTTP3(m, l); err != nil {
			return nil, err
		}
	}
	if err := endLoops(m, l); err != nil {
		return nil, err
	}
	if m.AccessLog, err = accessLogs(l, requestLog); err != nil {
		return nil, err
	}
	figures, err := figuresLogs(l)
	if err != nil {
		return nil, err
	}
	m.AccessLog = append(m.AccessLog, figures...)
	if m.Tracing, err = tracing(l.Telemetry.Tracing); err != nil {
		return nil, err
	}
	return pack(m)
}

// detectClient takes the client's address from X-Forwarded-For, where that comes from proxies with known addresses: the
// last one there that isn't any of theirs. The list ends with the peer's own address, see onArrival.
func detectClient(m *hcmv3.HttpConnectionManager, trusted []netip.Prefix) error {
	config, err := pack(&xffv3.XffConfig{
		XffTrustedCidrs: &xffv3.XffTrustedCidrs{Cidrs: cidrs(trusted)}, SkipXffAppend: wrapperspb.Bool(true),
	})
	m.UseRemoteAddress = wrapperspb.Bool(false) // Envoy has one or the other
	m.OriginalIpDetectionExtensions = []*corev3.TypedExtensionConfig{{Name: "envoy.http.original_ip_detection.xff", TypedConfig: config}}
	return err
}

// escapedSlashes is what Envoy calls what becomes of %2F and %5C.
var escapedSlashes = map[ir.EscapedSlashes]hcmv3.HttpConnectionManager_PathWithEscapedSlashesAction{
	ir.RejectEscaped:   hcmv3.HttpConnectionManager_REJECT_REQUEST,
	ir.RedirectEscaped: hcmv3.HttpConnectionManager_UNESCAPE_AND_REDIRECT,
	ir.KeepEscaped:     hcmv3.HttpConnectionManager_KEEP_UNCHANGED,
}

// mergeSlashes says whether several slashes are made one. A redirect to a path that begins
// with two of them would lead to another host.
func mergeSlashes(p ir.Paths) bool {
	return !p.KeepDoubled || p.Escaped == ir.RedirectEscaped
}

// noAddresses is a range that no client can have. An empty list would mean the
// private ranges to some releases of Envoy.
var noAddresses = []*corev3.CidrRange{{AddressPrefix: "255.255.255.255", PrefixLen: wrapperspb.UInt32(32)}}
