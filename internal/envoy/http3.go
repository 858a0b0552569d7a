package envoy

import (
	"fmt"
	"slices"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	quicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// HTTP/3 is a listener of its own, on the UDP port with the number of the TCP one,
// with the chains, tables and certificates of that. Clients come to know of it by
// Alt-Svc.

// altSvcAge is for how long, in seconds, a client may remember where HTTP/3 is: a
// day. It then tries both ways, so that a port which is gone costs it nothing.
const altSvcAge = 86400

// overQUIC makes a listener one of HTTP/3.
func overQUIC(m *listenerv3.Listener, l *ir.Listener) {
	limit := limits(l.Client.Limits)
	// A socket for each worker, as UDP needs it: the kernel gives all packets of a
	// client to the same.
	m.EnableReusePort = wrapperspb.Bool(true)
	m.UdpListenerConfig = &listenerv3.UdpListenerConfig{
		DownstreamSocketConfig: &corev3.UdpSocketConfig{PreferGro: joined},
		QuicOptions: &listenerv3.QuicProtocolOptions{
			QuicProtocolOptions:    quicProtocol(limit),
			IdleTimeout:            durationpb.New(min(quicIdleTimeout, limit.IdleTimeout)),
			CryptoHandshakeTimeout: durationpb.New(handshakeTimeout),
		},
	}
}

func quicProtocol(limit ir.Limits) *corev3.QuicProtocolOptions {
	return &corev3.QuicProtocolOptions{
		MaxConcurrentStreams:        wrapperspb.UInt32(limit.Streams),
		InitialStreamWindowSize:     wrapperspb.UInt32(streamWindowBytes),
		InitialConnectionWindowSize: wrapperspb.UInt32(connWindowBytes),
	}
}

// quicSocket puts TLS onto QUIC.
func quicSocket(c *ir.Chain) (*corev3.TransportSocket, error) {
	context := downstreamTLS(c)
	context.CommonTlsContext.AlpnProtocols = []string{"h3"}
	return securedBy("envoy.transport_sockets.quic", &quicv3.QuicDownstreamTransport{
		DownstreamTlsContext: context,
		// What a client sends before the handshake is done can be sent again by
		// whoever has seen it.
		EnableEarlyData: wrapperspb.Bool(false),
	})
}

// serveHTTP3 makes a connection manager speak HTTP/3, or say where it is spoken.
// Answers over HTTP/3 say so too, lest clients forget it.
func serveHTTP3(m *hcmv3.HttpConnectionManager, l *ir.Listener) error {
	if l.UDP {
		m.CodecType = hcmv3.HttpConnectionManager_HTTP3
		m.Http3ProtocolOptions = &corev3.Http3ProtocolOptions{QuicProtocolOptions: quicProtocol(limits(l.Client.Limits))}
		// WebSockets use TCP: clients see that they are not on offer here.
		m.Http2ProtocolOptions, m.UpgradeConfigs = nil, nil
	}
	edge, err := pack(&headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{
		RequestMutations: edgeFilter.Mutations.RequestMutations,
		ResponseMutations: append(slices.Clip(edgeFilter.Mutations.ResponseMutations), &mutationv3.HeaderMutation{
			Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
				Header: &corev3.HeaderValue{Key: "alt-svc", Value: fmt.Sprintf(`h3=":%d"; ma=%d`, l.ClientPort(), altSvcAge)},
				// A backend's own is about its own ports.
				AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
			}},
		}),
	}})
	if err != nil {
		return err
	}
	m.HttpFilters = slices.Clone(m.HttpFilters)
	m.HttpFilters[0] = &hcmv3.HttpFilter{
		Name:       m.HttpFilters[0].Name,
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: edge},
	}
	return nil
}
