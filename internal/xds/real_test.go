package xds

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

func TestEnvoyServesAndIsSynced(t *testing.T) {
	w := realWorld(t)
	all, _ := w.config(50)
	w.apply(all...)
	w.state("synced", func(s State) bool { return s.Synced && s.Listeners["http"] != "" && s.Connected == 1 })
	for i := range 50 {
		if got := w.get(fmt.Sprintf("h%03d", i)); got != "/1" {
			t.Fatalf("host %d: %s", i, got)
		}
	}
	w.settled()
	for _, y := range w.server.Sessions()[0].Types {
		if y.Nacks > 0 || y.Sent != y.Acked {
			t.Errorf("%+v", y)
		}
		// What went out unasked is not sent again when it is asked for.
		if want := uint64(50); y.Type == "endpoints" && y.Sent != want {
			t.Errorf("%d endpoints sent, want %d", y.Sent, want)
		}
	}
}

func (w *world) settled() {
	w.t.Helper()
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%+v", w.server.Sessions())
		}
	}()
	waitFor(w.t, "everything answered", func() bool {
		s := w.server.Sessions()
		return len(s) == 1 && s[0].Unanswered == 0 && s[0].Pending == 0
	})
}

// Routes with new backends are added and removed under load: every request gets the
// route or 404, and nothing in between.
func TestEnvoyRoutesComeAndGo(t *testing.T) {
	w := realWorld(t)
	all, parts := w.config(20)
	w.apply(all...)
	w.state("synced", func(s State) bool { return s.Synced })

	var wrong, requests atomic.Int64
	var first atomic.Pointer[string]
	stop := crowd(func() {
		requests.Add(1)
		if got := w.get("new"); got != "404" && !strings.HasPrefix(got, "/v") {
			wrong.Add(1)
			first.CompareAndSwap(nil, &got)
		}
	})
	for i := range 60 {
		name, version := fmt.Sprint("backend-", i), fmt.Sprint("v", i)
		with := append(append([]*envoy.Part{}, parts...), w.host("new", name, version))
		w.apply(append(w.destination(name), envoy.RouteTable("t", with))...)
		w.serves("new", "/"+version) // this one, and not the one before it
		w.apply(envoy.RouteTable("t", parts), "-cluster/"+name, "-endpoints/"+name)
		if i%2 == 0 {
			w.serves("new", "404")
		}
	}
	stop()
	if wrong.Load() > 0 {
		t.Errorf("%d of %d answers were neither 404 nor 200, first: %s", wrong.Load(), requests.Load(), *first.Load())
	}
	t.Logf("%d requests", requests.Load())
	w.settled()
	for _, y := range w.server.Sessions()[0].Types {
		if y.Type == "endpoints" && y.Sent != 80 {
			t.Errorf("%d endpoints sent, want 80", y.Sent)
		}
	}
	if i, _ := w.server.Gateway(gw); len(i.Resources) != 42 {
		t.Errorf("%d resources are left", len(i.Resources))
	}
}

// Two of ten hosts that have changed are bad: the other eight are in force, the bad ones
// are as before, and a change ends the quarantine.
func TestEnvoyRefusesHosts(t *testing.T) {
	w := realWorld(t)
	all, parts := w.config(30)
	w.apply(all...)
	w.state("synced", func(s State) bool { return s.Synced })

	next := append([]*envoy.Part{}, parts...)
	for i := 10; i < 20; i++ {
		name := fmt.Sprintf("h%03d", i)
		next[i] = w.host(name, name, "2")
	}
	next[13], next[17] = badHost("h013", "(("), badHost("h017", "a**")
	next = append(next, badHost("new", "))"))
	w.apply(envoy.RouteTable("t", next))
	s := w.state("the culprits", rejects("routes/t/h013 old", "routes/t/h017 old", "routes/t/new"))
	for i, message := range []string{"missing )", "repetition", "unexpected )"} {
		if !strings.Contains(s.Rejected[i].Message, message) {
			t.Errorf("%s: %s", s.Rejected[i].Part, s.Rejected[i].Message)
		}
	}
	for i := range 30 {
		want := "/1"
		if i >= 10 && i < 20 && i != 13 && i != 17 {
			want = "/2"
		}
		w.serves(fmt.Sprintf("h%03d", i), want)
	}
	w.serves("new", "500")
	next[13], next[17], next[30] = w.host("h013", "h013", "3"), w.host("h017", "h017", "3"), w.host("new", "h001", "3")
	w.apply(envoy.RouteTable("t", next))
	w.serves("h013", "/3")
	w.serves("h017", "/3")
	w.serves("new", "/3")
	w.state("healed", rejects())
}

// Refusals of clusters, with names and without, and of listeners.
func TestEnvoyRefusesClustersAndListeners(t *testing.T) {
	w := realWorld(t)
	all, parts := w.config(5)
	w.apply(all...)
	w.state("synced", func(s State) bool { return s.Synced })
	broken := func(name string, change func(*clusterv3.Cluster)) *envoy.Resource {
		return changedResource(t, w.destination(name)[0].(*envoy.Resource), &clusterv3.Cluster{}, change)
	}
	nowhere := func(c *clusterv3.Cluster) { c.EdsClusterConfig = nil }
	malformed := func(c *clusterv3.Cluster) {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
		c.EdsClusterConfig = nil
		c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: c.Name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: "nowhere", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
				}}},
			}}}},
		}}}
	}
	good := w.destination("good")
	parts = append(parts, w.host("good", "good", "1"))
	w.apply(append(good, broken("h000", nowhere), broken("h001", malformed), envoy.RouteTable("t", parts))...)
	s := w.state("both named", rejects("cluster/h000 old", "cluster/h001 old"))
	for i, want := range []string{"cannot create an EDS cluster without an EDS config", "malformed IP address: nowhere"} {
		if m := s.Rejected[i].Message; !strings.HasPrefix(m, want) || strings.Contains(m, "h001: ") {
			t.Errorf("message: %s", m)
		}
	}
	w.serves("good", "/1")
	w.serves("h000", "/1")

	negative := func(c *clusterv3.Cluster) { c.ConnectTimeout = durationpb.New(-time.Second) }
	w.apply(broken("h002", negative), changedResource(t, w.destination("h003")[0].(*envoy.Resource), &clusterv3.Cluster{},
		func(c *clusterv3.Cluster) { c.AltStatName = "other" }))
	w.state("the third found", rejects("cluster/h000 old", "cluster/h001 old", "cluster/h002 old"))
	w.serves("h002", "/1")
	w.serves("h003", "/1")

	second := uint16(port.OfTest(t))
	bad := changedResource(t, w.httpListener("bad", uint16(port.OfTest(t))), &listenerv3.Listener{}, func(l *listenerv3.Listener) {
		l.FilterChains = append(l.FilterChains, l.FilterChains[0]) // the same match twice
	})
	w.apply(bad, w.httpListener("second", second))
	w.state("the listener too", rejects("cluster/h000 old", "cluster/h001 old", "cluster/h002 old", "listener/bad"))
	waitFor(t, "the other listener serves", func() bool { return w.getAt(second, "h004") == "/1" })

	w.apply(append(append(w.destination("h000"), w.destination("h001")...), append(w.destination("h002"), "-listener/bad")...)...)
	w.state("healed", rejects())
	w.settled()
}

// Envoy keeps a cluster whose load balancer it refuses among those that warm, and does not
// answer about clusters as long as one warms.
func TestEnvoyHoldsBackAnswers(t *testing.T) {
	w := realWorld(t)
	all, parts := w.config(3)
	w.apply(all...)
	w.state("synced", func(s State) bool { return s.Synced })
	w.settled()
	broken := func(name string) *envoy.Resource {
		return changedResource(t, w.destination(name)[0].(*envoy.Resource), &clusterv3.Cluster{}, func(c *clusterv3.Cluster) {
			c.LbPolicy = clusterv3.Cluster_RING_HASH
			c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{
				MinimumRingSize: wrapperspb.UInt64(10), MaximumRingSize: wrapperspb.UInt64(5),
			}}
		})
	}
	// Where nothing else warms, the refusal comes, and what follows ends the
	// warming.
	w.apply(broken("h000"), broken("h001"), broken("new"))
	w.state("refused", rejects("cluster/h000 old", "cluster/h001 old", "cluster/new"))
	w.settled()
	w.serves("h000", "/1")
	w.apply(append(append(w.destination("h000"), w.destination("h001")...), "-cluster/new")...)
	w.state("healed", rejects())

	// Where something does, it may never come. All goes on as if it had, and
	// mending the cluster brings the answers.
	w.apply(append(w.destination("other"), broken("h000"))...)
	for i := range 5 {
		name := fmt.Sprint("new-", i)
		parts = append(parts, w.host(name, name, "1"))
		w.apply(append(w.destination(name), envoy.RouteTable("t", parts))...)
		w.serves(name, "/1")
	}
	w.apply(envoy.RouteTable("t", parts[:3]), "-cluster/new-0", "-endpoints/new-0")
	w.serves("new-0", "404")
	w.serves("h000", "/1")
	w.apply(w.destination("h000")...)
	w.settled()
	waitFor(t, "nothing in quarantine", func() bool { i, _ := w.server.Gateway(gw); return len(i.Quarantine) == 0 })
}

// A port in use is reported and tried again. A listener can get another's address in one
// change.
func TestEnvoyPorts(t *testing.T) {
	w := realWorld(t, func(o *Options) { o.BindRetry = 50 * time.Millisecond })
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, taken, err)
	port := netip.MustParseAddrPort(taken.Addr().String()).Port()
	all, _ := w.config(2)
	w.apply(append(all, w.httpListener("taken", port))...)
	s := w.state("the taken port", func(s State) bool { return rejects("listener/taken")(s) && s.Synced })
	if m := s.Rejected[0].Message; !strings.Contains(m, "in use") {
		t.Error(m)
	}
	w.serves("h000", "/1")
	_ = taken.Close()
	w.state("bound", func(s State) bool { return rejects()(s) && s.Listeners["taken"] != "" })
	waitFor(t, "serves", func() bool { return w.getAt(port, "h001") == "/1" })

	w.apply("-listener/http", w.httpListener("renamed", w.port))
	w.state("renamed", func(s State) bool {
		return rejects()(s) && s.Listeners["renamed"] != "" && s.Listeners["http"] == ""
	})
	w.client.CloseIdleConnections()
	w.serves("h000", "/1")
}

// A Gateway changes from one address to all and back: Envoy still has the old socket when
// it opens the new one.
func TestEnvoyAddressesMove(t *testing.T) {
	w := realWorld(t)
	w.server.bindReport = time.Hour // a busy machine closes a socket late
	all, _ := w.config(1)
	w.apply(all...)
	w.serves("h000", "/1")
	refusals := func() (n uint64) {
		for _, y := range w.server.Sessions()[0].Types {
			n += y.Nacks
		}
		return n
	}
	at := func(name, address string) *envoy.Resource {
		r, errs := envoy.Listener(name, &ir.Listener{
			Name: name, Port: w.port, BindPort: w.port, Addresses: []string{address}, Chains: []ir.Chain{{Table: "t"}},
		})
		return must(t, r, errs...)
	}
	last := "http"
	for i := range 10 {
		name, address := fmt.Sprint("http-", i), []string{"0.0.0.0", "127.0.0.1"}[i%2]
		before := refusals()
		w.apply("-listener/"+last, at(name, address))
		s := w.state("moved", func(s State) bool {
			if len(s.Rejected) > 0 {
				t.Errorf("rejected: %+v", s.Rejected)
			}
			return s.Listeners[name] != ""
		})
		w.client.CloseIdleConnections()
		w.serves("h000", "/1")
		// After so many, the next pause would be one for a port that somebody else has.
		if n := refusals() - before; n > 5 {
			t.Errorf("it took %d tries", n+1)
		}
		if len(s.Listeners) != 1 {
			t.Errorf("%v", s.Listeners)
		}
		last = name
	}
}

// A control plane that restarts under load fails no request and sends nothing that the
// proxy has, only what has changed meanwhile.
func TestEnvoyMeetsANewControlPlane(t *testing.T) {
	w := realWorld(t)
	all, parts := w.config(20)
	left := w.destination("left")
	w.apply(append(left, all...)...)
	w.state("synced", func(s State) bool { return s.Synced })
	w.settled()

	done := make(chan struct{})
	var wrong atomic.Int64
	var clients sync.WaitGroup
	clients.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if got := w.get(fmt.Sprintf("h%03d", i%20)); got != "/1" && got != "/2" {
				wrong.Add(1)
			}
		}
	})
	w.stop()
	w.serveOn(t)
	waitFor(t, "back", func() bool { s := w.server.Sessions(); return len(s) == 1 && len(s[0].Types) == 5 })
	w.apply(append(left, all...)...)
	w.state("synced again", func(s State) bool { return s.Synced && s.Listeners["http"] != "" })
	for _, y := range w.server.Sessions()[0].Types {
		if y.Sent > 0 {
			t.Errorf("%d %s sent to a proxy that has them", y.Sent, y.Type)
		}
	}
	w.stop()
	w.serveOn(t)
	parts[3] = w.host("h003", "h003", "2")
	w.apply(append(all, envoy.RouteTable("t", parts))...)
	w.serves("h003", "/2")
	w.settled()
	close(done)
	clients.Wait()
	if wrong.Load() > 0 {
		t.Errorf("%d requests failed", wrong.Load())
	}
	for _, y := range w.server.Sessions()[0].Types {
		if want := map[string]uint64{"routes": 1}[y.Type]; y.Sent != want {
			t.Errorf("%d %s sent, want %d", y.Sent, y.Type, want)
		}
		if y.Type == "cluster" && y.Resources != 20 {
			t.Errorf("%d clusters, want 20", y.Resources)
		}
	}
}

// Connections that end for their age cost no request, no resource that Envoy has already, and no change.
func TestEnvoyConnectsAnew(t *testing.T) {
	w := realWorld(t, func(o *Options) { o.MaxAge = time.Second })
	all, parts := w.config(20)
	w.apply(all...)
	w.state("synced", func(s State) bool { return s.Synced })
	var wrong, requests atomic.Int64
	stop := crowd(func() {
		requests.Add(1)
		if got := w.get("h001"); got != "/1" {
			wrong.Add(1)
		}
	})
	connections := map[uint64]bool{}
	for i := 0; len(connections) < 4; i++ {
		version := fmt.Sprint("v", i)
		parts[3] = w.host("h003", "h003", version)
		w.apply(envoy.RouteTable("t", parts))
		w.serves("h003", "/"+version)
		for _, s := range w.server.Sessions() {
			connections[s.ID] = true
			for _, y := range s.Types {
				if y.Nacks > 0 || len(connections) > 1 && y.Type != "routes" && y.Sent > 0 {
					t.Errorf("connection %d: %+v", s.ID, y)
				}
			}
		}
	}
	stop()
	if wrong.Load() > 0 {
		t.Errorf("%d of %d requests failed", wrong.Load(), requests.Load())
	}
	t.Logf("%d requests", requests.Load())
}
