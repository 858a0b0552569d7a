package envoy

import (
	"errors"
	"fmt"
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Listener returns a listener by a name of Envoy's. A chain or an address that Envoy would refuse is
// reported and left out; the resource is nil where nothing is left to serve.
func Listener(name string, l *ir.Listener) (*Resource, []error) {
	var errs []error
	m := &listenerv3.Listener{
		Name: name,
		// Another process on the port is an error to report. With the default,
		// the two would share its connections and nobody would know.
		EnableReusePort:               wrapperspb.Bool(false),
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(limits(l.Client.Limits).BufferKiB << 10),
	}
	datagrams := l.UDP && len(l.Chains) > 0 && l.Chains[0].Forward != nil
	if l.UDP && !datagrams {
		overQUIC(m, l)
	}
	for _, text := range l.Addresses {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("listener %s: address %q is not an IP address", l.Name, text))
			continue
		}
		if a := socket(addr, l); m.Address == nil {
			m.Address = a
		} else {
			m.AdditionalAddresses = append(m.AdditionalAddresses, &listenerv3.AdditionalAddress{Address: a})
		}
	}
	if datagrams {
		if m.Address == nil {
			return nil, append(errs, fmt.Errorf("listener %s: no address to listen on", l.Name))
		}
		if err := udpProxy(m, l); err != nil {
			return nil, append(errs, fmt.Errorf("listener %s: %w", l.Name, err))
		}
		return sent(m, errs)
	}
	hostnames := make(map[string]bool, len(l.Chains))
	var onDemand *ir.Chain
	for i := range l.Chains {
		c := &l.Chains[i]
		if c.OnDemand {
			onDemand = c
			continue
		}
		if hostnames[c.Hostname] {
			errs = append(errs, fmt.Errorf("listener %s, hostname %q: served already", l.Name, c.Hostname))
			continue
		}
		hostnames[c.Hostname] = true
		chain, err := filterChain(l, c)
		if err != nil {
			errs = append(errs, fmt.Errorf("listener %s, hostname %q: %w", l.Name, c.Hostname, err))
			continue
		}
		m.FilterChains = append(m.FilterChains, chain)
	}
	if onDemand != nil {
		if err := shareChain(m, l, onDemand); err != nil {
			errs = append(errs, fmt.Errorf("listener %s, certificates on demand: %w", l.Name, err))
		}
	}
	listenerFilters(m, l)
	if m.Address == nil {
		return nil, append(errs, fmt.Errorf("listener %s: no address to listen on", l.Name))
	}
	if len(m.FilterChains) == 0 {
		return nil, append(errs, fmt.Errorf("listener %s: nothing to serve", l.Name))
	}
	r, errs := sent(m, errs)
	if by := guardOfClients(l); r != nil && by != nil {
		r = r.Guarded(by)
	}
	return r, errs
}

// sent marshals a listener that is ready.
func sent(m *listenerv3.Listener, errs []error) (*Resource, []error) {
	r, err := resource(Listeners, m.Name, m)
	if err != nil {
		return nil, append(errs, fmt.Errorf("listener %s: %w", m.Name, err))
	}
	return r, errs
}

func filterChain(l *ir.Listener, c *ir.Chain) (*listenerv3.FilterChain, error) {
	// The name is the chain's identity when the listener is updated.
	chain := &listenerv3.FilterChain{Name: chainName(l, c)}
	var filter *listenerv3.Filter
	var err error
	if c.Forward != nil {
		filter, err = forwarder(l, c)
	} else {
		filter, err = requests(l, c)
	}
	if err != nil {
		return nil, err
	}
	chain.Filters = []*listenerv3.Filter{filter}
	// A chain without a hostname has no match: it takes what no other chain
	// does, clients without a server name too. One on demand is behind a matcher.
	if c.Hostname != "" {
		chain.FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: []string{c.Hostname}}
	}
	if c.TLS != nil {
		if len(c.TLS.Certificates) == 0 && !c.OnDemand {
			return nil, errors.New("no certificate")
		}
		secure := transportSocket
		if l.UDP {
			secure = quicSocket
		}
		if chain.TransportSocket, err = secure(c); err != nil {
			return nil, err
		}
		chain.TransportSocketConnectTimeout = durationpb.New(handshakeTimeout)
	}
	return chain, chain.ValidateAll()
}

// chainName is what Envoy calls a chain of a listener.
func chainName(l *ir.Listener, c *ir.Chain) string {
	switch {
	case c.Forward != nil:
		return forwardName(l.Name, c)
	case c.OnDemand:
		return l.Name + "/on-demand"
	default:
		return c.Table
	}
}

// requests is the filter of a chain that reads requests.
func requests(l *ir.Listener, c *ir.Chain) (*listenerv3.Filter, error) {
	config, err := connectionManager(l, c)
	if err != nil {
		return nil, err
	}
	return &listenerv3.Filter{
		Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config},
	}, nil
}

func socket(addr netip.Addr, l *ir.Listener) *corev3.Address {
	s := &corev3.SocketAddress{
		Address:       addr.String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(l.BindPort)},
	}
	if l.UDP {
		s.Protocol = corev3.SocketAddress_UDP
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: s}}
}
