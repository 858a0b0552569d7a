package envoy

import (
	"net"
	"net/http"
	"net/netip"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	caresv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// nameServer answers for names with IPv4 addresses until the test ends.
func nameServer(t *testing.T, names map[string]netip.Addr) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = conn.Close(); <-ended })
	go func() {
		defer close(ended)
		buffer := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true}, Questions: m.Questions}
			if ip, ok := names[q.Name.String()]; !ok {
				answer.RCode = dnsmessage.RCodeNameError
			} else if q.Type == dnsmessage.TypeA {
				answer.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60},
					Body:   &dnsmessage.AResource{A: ip.As4()},
				}}
			}
			if raw, err := answer.Pack(); err == nil {
				_, _ = conn.WriteToUDPAddrPort(raw, from)
			}
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// ask makes a cluster ask a name server.
func ask(t *testing.T, c *clusterv3.Cluster, server netip.AddrPort) {
	t.Helper()
	custom := c.GetClusterType()
	config, cares := &dnsv3.DnsCluster{}, &caresv3.CaresDnsResolverConfig{}
	if err := custom.TypedConfig.UnmarshalTo(config); err != nil {
		t.Fatal(err)
	}
	if err := config.TypedDnsResolverConfig.TypedConfig.UnmarshalTo(cares); err != nil {
		t.Fatal(err)
	}
	cares.FilterUnroutableFamilies = false // the test may have loopback only
	cares.Resolvers = []*corev3.Address{{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       server.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(server.Port())},
	}}}}
	config.TypedDnsResolverConfig.TypedConfig = constant(cares)
	custom.TypedConfig = constant(config)
}

// interfaceAddress is an address of this host that is not loopback's; zero where there is
// none.
func interfaceAddress() netip.Addr {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// TestEnvoyChecksAddresses protects what only the cluster and the proxy itself can reach
// from names outside that resolve to it.
func TestEnvoyChecksAddresses(t *testing.T) {
	t.Parallel()
	own := interfaceAddress()
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})} //nolint:gosec // a test's
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	port := int32(netip.MustParseAddrPort(listener.Addr().String()).Port())

	names := map[string]netip.Addr{
		"loopback.test.": netip.MustParseAddr("127.0.0.1"), "metadata.test.": netip.MustParseAddr("169.254.169.254"),
		"pod.test.": netip.MustParseAddr("10.255.255.254"), "listed.test.": own,
	}
	type test struct {
		host, private string
		protocol      ir.Protocol
		want          int
	}
	tests := []test{
		{"loopback.test", "", ir.HTTP1, http.StatusForbidden},
		{"loopback.test", "127.0.0.0/8", ir.H2C, http.StatusForbidden},
		{"metadata.test", "", ir.WebSocket, http.StatusForbidden},
		{"pod.test", "10.1.0.0/16", ir.HTTP1, http.StatusForbidden},
	}
	if own.IsValid() {
		unlisted := http.StatusOK
		if own.IsPrivate() {
			unlisted = http.StatusForbidden
		}
		tests = append(tests, test{"listed.test", own.String() + "/32", ir.HTTP1, http.StatusOK},
			test{"listed.test", "", ir.HTTP1, unlisted})
	}
	s := plain(nil)
	var rules []*ir.Rule
	for i, c := range tests {
		b := &ir.Backend{
			Named: "default/" + c.host + string(rune('a'+i)), Protocol: c.protocol, Port: port, DNS: c.host, Outside: true, Private: c.private,
		}
		s.backends = append(s.backends, b)
		rules = append(rules, &ir.Rule{Match: prefix("/" + string(rune('a'+i))), Backends: []ir.WeightedBackend{{Backend: b.Key(), Weight: 1}}})
	}
	s.tables["http-80"] = rulesOn("*", rules...)
	resolver := nameServer(t, names)
	s.adjustCluster = func(c *clusterv3.Cluster) { ask(t, c, resolver) }
	e := s.start(t)
	for i, c := range tests {
		var a answered
		eventually(t, c.host+" to be resolved", func() bool {
			a = e.get(t, "http://a.example/"+string(rune('a'+i)))
			return a.Status != http.StatusServiceUnavailable
		})
		if a.Status != c.want {
			t.Errorf("%s, %q: %d, want %d: %s", c.host, c.private, a.Status, c.want, a.Body)
		}
	}
}
