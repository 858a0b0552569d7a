package envoy

import (
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	httpinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/http_inspector/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	tlsinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// tlsInspector reads the server name that a client asks for.
var tlsInspector = &listenerv3.ListenerFilter{
	Name:       "envoy.filters.listener.tls_inspector",
	ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: constant(&tlsinspectorv3.TlsInspector{})},
}

// httpInspector waits for the first bytes of a request. Nothing that follows from them is
// used: it is there since Envoy has no other limit for a connection without TLS on which
// nothing has come yet.
var httpInspector = &listenerv3.ListenerFilter{
	Name:       "envoy.filters.listener.http_inspector",
	ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: constant(&httpinspectorv3.HttpInspector{})},
}

// proxyProtocol reads who the client is. A connection without the header is
// refused: were it let through, anybody could come without.
var proxyProtocol = &listenerv3.ListenerFilter{
	Name:       "envoy.filters.listener.proxy_protocol",
	ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: constant(&proxyprotocolv3.ProxyProtocol{})},
}

// listenerFilters sets what reads the first bytes of a connection, in the order in
// which they come, and how long it waits for them.
func listenerFilters(m *listenerv3.Listener, l *ir.Listener) {
	if l.UDP {
		return // QUIC's handshake says it all
	}
	if l.Client.ProxyProtocol {
		m.ListenerFilters = append(m.ListenerFilters, proxyProtocol)
	}
	// Only where they are needed: they wait for the client to speak first.
	switch {
	case l.TLS:
		m.ListenerFilters = append(m.ListenerFilters, tlsInspector)
	case strangers(l):
		m.ListenerFilters = append(m.ListenerFilters, httpInspector)
	}
	if m.ListenerFilters != nil {
		m.ListenerFiltersTimeout = durationpb.New(firstBytesTimeout)
	}
}

// strangers reports whether a listener is one of plain HTTP for clients that nobody knows.
// Proxies in front, which are known, may open connections for later.
func strangers(l *ir.Listener) bool {
	if l.Client.ProxyProtocol || l.Client.TrustedHops > 0 {
		return false
	}
	return !slices.ContainsFunc(l.Chains, func(c ir.Chain) bool { return c.Forward != nil })
}
