package envoy

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// handshakeTimeout bounds a TLS handshake: a certificate that does not come, or
// a client that says nothing, must not hold a connection for ever.
const handshakeTimeout = 10 * time.Second

// Options are what the operator of a proxy chooses for all its listeners.
type Options struct {
	// AccessLog is the file for a line per request, such as /dev/stdout; empty
	// for none.
	AccessLog string
}

// tlsInspector reads the server name that a client asks for.
var tlsInspector = &listenerv3.ListenerFilter{
	Name:       "envoy.filters.listener.tls_inspector",
	ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: constant(&tlsinspectorv3.TlsInspector{})},
}

// Listener returns a listener with default options. See Options.Listener.
func Listener(l *ir.Listener) (*Resource, []error) { return Options{}.Listener(l) }

// Listener returns a listener. A chain or an address that Envoy would refuse is
// reported and left out; the resource is nil where nothing is left to serve.
func (o Options) Listener(l *ir.Listener) (*Resource, []error) {
	var errs []error
	m := &listenerv3.Listener{
		Name: l.Name,
		// Another process on the port is an error to report. With the default,
		// the two would share its connections and nobody would know.
		EnableReusePort:               wrapperspb.Bool(false),
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(bufferLimit),
	}
	for _, text := range l.Addresses {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("listener %s: address %q is not an IP address", l.Name, text))
			continue
		}
		if a := socket(addr, l.BindPort); m.Address == nil {
			m.Address = a
		} else {
			m.AdditionalAddresses = append(m.AdditionalAddresses, &listenerv3.AdditionalAddress{Address: a})
		}
	}
	hostnames := make(map[string]bool, len(l.Chains))
	for i := range l.Chains {
		c := &l.Chains[i]
		if hostnames[c.Hostname] {
			errs = append(errs, fmt.Errorf("listener %s, hostname %q: served already", l.Name, c.Hostname))
			continue
		}
		hostnames[c.Hostname] = true
		chain, err := o.filterChain(l.Name, c)
		if err != nil {
			errs = append(errs, fmt.Errorf("listener %s, hostname %q: %w", l.Name, c.Hostname, err))
			continue
		}
		m.FilterChains = append(m.FilterChains, chain)
		// Only where it is needed: it waits for the client to speak first.
		if c.TLS != nil && m.ListenerFilters == nil {
			m.ListenerFilters = []*listenerv3.ListenerFilter{tlsInspector}
		}
	}
	if m.Address == nil {
		return nil, append(errs, fmt.Errorf("listener %s: no address to listen on", l.Name))
	}
	if len(m.FilterChains) == 0 {
		return nil, append(errs, fmt.Errorf("listener %s: nothing to serve", l.Name))
	}
	r, err := resource(Listeners, l.Name, m)
	if err != nil {
		return nil, append(errs, fmt.Errorf("listener %s: %w", l.Name, err))
	}
	return r, errs
}

func (o Options) filterChain(listener string, c *ir.Chain) (*listenerv3.FilterChain, error) {
	manager, err := connectionManager(c.Table, listener, o)
	if err != nil {
		return nil, err
	}
	chain := &listenerv3.FilterChain{
		// The name is the chain's identity when the listener is updated.
		Name: c.Table,
		Filters: []*listenerv3.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager},
		}},
	}
	// A chain without a hostname has no match: it takes what no other chain
	// does, clients without a server name too.
	if c.Hostname != "" {
		chain.FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: []string{c.Hostname}}
	}
	if c.TLS != nil {
		if len(c.TLS.Certificates) == 0 {
			return nil, errors.New("no certificate")
		}
		if chain.TransportSocket, err = downstreamTLS(c.TLS); err != nil {
			return nil, err
		}
		chain.TransportSocketConnectTimeout = durationpb.New(handshakeTimeout)
	}
	return chain, chain.ValidateAll()
}

func socket(addr netip.Addr, port uint16) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       addr.String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)},
	}}}
}
