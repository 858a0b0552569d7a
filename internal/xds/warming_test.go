package xds

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	dnsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/dns/v3"
	caresv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	"golang.org/x/net/dns/dnsmessage"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// nameServer answers every name with 127.0.0.1 from the moment it is told to.
type nameServer struct {
	port  uint16
	asked chan struct{} // closed when the first question has come
	speak chan struct{} // close it to have questions answered
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, conn, err)
	n := &nameServer{
		port:  netip.MustParseAddrPort(conn.LocalAddr().String()).Port(),
		asked: make(chan struct{}), speak: make(chan struct{}),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.serve(conn)
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return n
}

func (n *nameServer) serve(conn net.PacketConn) {
	b := make([]byte, 512)
	for first := true; ; first = false {
		size, from, err := conn.ReadFrom(b)
		if err != nil {
			return
		}
		if first {
			close(n.asked)
		}
		var m dnsmessage.Message
		if m.Unpack(b[:size]) != nil || len(m.Questions) != 1 {
			continue
		}
		select {
		case <-n.speak:
		default:
			continue // the resolver asks again
		}
		m.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			m.Answers = []dnsmessage.Resource{{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
				Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			}}
		}
		if answer, err := m.Pack(); err == nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

// external is the cluster of a name, asked for at the name server.
func (w *world) external(name, host string, n *nameServer) *envoy.Resource {
	at := netip.MustParseAddrPort(w.backend.Listener.Addr().String())
	r, err := envoy.Cluster(&ir.Backend{Named: name, Protocol: ir.HTTP1, DNS: host, Port: int32(at.Port())})
	must(w.t, r, err)
	return changedResource(w.t, r, &clusterv3.Cluster{}, func(c *clusterv3.Cluster) {
		typed := c.GetClusterType()
		d := &dnsv3.DnsCluster{}
		if err := typed.GetTypedConfig().UnmarshalTo(d); err != nil {
			w.t.Fatal(err)
		}
		d.TypedDnsResolverConfig = &corev3.TypedExtensionConfig{
			Name: "envoy.network.dns_resolver.cares",
			TypedConfig: packed(w.t, &caresv3.CaresDnsResolverConfig{
				Resolvers: []*corev3.Address{{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(n.port)},
				}}}},
				QueryTimeoutSeconds: wrapperspb.UInt64(1),
				QueryTries:          wrapperspb.UInt32(100),
			}),
		}
		typed.TypedConfig = packed(w.t, d)
	})
}

func packed(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	return must(t, a, err)
}

// waits makes Envoy warm a cluster until its name is resolved, as is the default.
func waits(t *testing.T, r *envoy.Resource) *envoy.Resource {
	return changedResource(t, r, &clusterv3.Cluster{}, func(c *clusterv3.Cluster) { c.WaitForWarmOnInit = nil })
}

// gaveUpNothing checks that Envoy has waited for nothing that it asked for until it gave up.
func (w *world) gaveUpNothing() {
	w.t.Helper()
	if strings.Contains(w.output.String(), "initial fetch timed out") {
		w.t.Error("Envoy has asked for something and got no answer")
	}
}

// An Envoy that starts asks for endpoints when DNS has answered, and drops those that it got
// before: it must be answered then.
func TestEnvoyAsksForEndpointsAfterDNS(t *testing.T) {
	w := realWorld(t)
	n := newNameServer(t)
	all, parts := w.config(20)
	table := envoy.RouteTable("t", append(parts, w.host("external", "external", "1")))
	w.apply(append(all, waits(t, w.external("external", "backend.example", n)), table)...)
	<-n.asked
	close(n.speak)
	w.serves("external", "/1")
	for i := range 20 {
		w.serves(fmt.Sprintf("h%03d", i), "/1")
	}
	w.gaveUpNothing()
	w.settled()
}

// A name that can't be resolved delays nothing else, neither at the start nor later, and is
// served as soon as it can be resolved.
func TestEnvoyDoesNotWaitForDNS(t *testing.T) {
	w := realWorld(t)
	n := newNameServer(t)
	all, parts := w.config(20)
	parts = append(parts, w.host("external", "external", "1"))
	w.apply(append(all, w.external("external", "backend.example", n), envoy.RouteTable("t", parts))...)
	w.state("synced", func(s State) bool { return s.Synced })
	for i := range 20 {
		w.serves(fmt.Sprintf("h%03d", i), "/1")
	}
	w.gaveUpNothing()
	w.settled()
	if got := w.get("external"); got != "503" {
		t.Errorf("the name serves %s before it is resolved", got)
	}

	parts = append(parts, w.host("later", "later", "1"), w.host("new", "new", "1"))
	w.apply(append(w.destination("new"), w.external("later", "later.example", n), envoy.RouteTable("t", parts))...)
	w.serves("new", "/1")
	w.settled()
	<-n.asked
	close(n.speak)
	w.serves("external", "/1")
	w.serves("later", "/1")
}
