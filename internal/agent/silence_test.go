package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
	"github.com/gatehouse-dev/gatehouse/test/port"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

const (
	// noticedWithin is what docs/architecture/agent.md promises.
	noticedWithin = 5 * time.Second
	// replacedWithin too.
	replacedWithin = 20 * time.Second
	// busyFor is for how long nothing may be taken for a standstill: several times
	// what a standstill is noticed in.
	busyFor = 15 * time.Second
	// routes of a table that keeps Envoy's main thread busy for a while.
	manyRoutes = 20_000
)

// A test that stops a process, or must not share one, runs this binary again. What
// it plays then is in partEnv.
const (
	partEnv = "GATEHOUSE_TEST_PART"
	dirEnv  = "GATEHOUSE_TEST_DIR" // of a controller: what it serves
)

var parts = map[string]func(){"controller": playController, "load": playLoad}

// play starts a process that ends with the test, and returns its first line.
func play(t *testing.T, part string, environ ...string) (pid int, line string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), environ...), partEnv+"="+part)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // its end is the end of the process
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Wait()
	})
	if line, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, line[:len(line)-1]
}

// untilTold returns when the test that has started this process wants it to end.
func untilTold() { _, _ = io.Copy(io.Discard, os.Stdin) }

// playLoad keeps every processor busy, with more than one thread for each.
func playLoad() {
	var told atomic.Bool
	for range 2 * runtime.NumCPU() {
		go func() {
			for !told.Load() {
			}
		}()
	}
	fmt.Println("busy")
	untilTold()
	told.Store(true)
}

// playController serves the listener, and each second the next of the route tables.
func playController() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := xds.New(xds.Options{Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = server.Serve(ctx, l, gateway) }()
	read := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join(os.Getenv(dirEnv), name))
		if err != nil {
			panic(err)
		}
		return raw
	}
	tables := []*envoy.Resource{
		envoy.NewResource(envoy.Routes, "routes", read("even")), envoy.NewResource(envoy.Routes, "routes", read("odd")),
	}
	edge := envoy.NewResource(envoy.Listeners, "edge", read("listener"))
	server.Apply([]xds.Update{{Gateway: gateway, Set: []*envoy.Resource{edge, tables[0]}}})
	go func() {
		for i := range time.Tick(time.Second) {
			table := tables[i.Second()%2]
			server.Apply([]xds.Update{{Gateway: gateway, Set: []*envoy.Resource{table}}})
		}
	}()
	fmt.Println(l.Addr())
	untilTold()
}

// anotherController serves a table of routes on the address, in a process of its own.
func anotherController(t *testing.T, address *net.TCPAddr, routes int) (pid int, xdsAddress string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, m proto.Message) {
		raw, err := proto.Marshal(m)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("listener", tableListener(t, address))
	write("even", table(routes, 200))
	write("odd", table(routes, 201))
	return play(t, "controller", dirEnv+"="+dir)
}

// tableListener serves the table of routes that xDS brings.
func tableListener(t *testing.T, address *net.TCPAddr) proto.Message {
	return &listenerv3.Listener{
		Name: "edge",
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: address.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(address.Port)},
		}}},
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(t, &hcmv3.HttpConnectionManager{
				StatPrefix: "edge",
				RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
					RouteConfigName: "routes",
					ConfigSource: &corev3.ConfigSource{
						ResourceApiVersion:    corev3.ApiVersion_V3,
						ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
					},
				}},
				HttpFilters: []*hcmv3.HttpFilter{{
					Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(t, &routerv3.Router{})},
				}},
			})},
		}}}},
	}
}

// table answers so many hosts, and all others.
func table(routes int, code uint32) proto.Message {
	answer := []*routev3.Route{{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: code}},
	}}
	out := &routev3.RouteConfiguration{Name: "routes"}
	for i := range routes {
		host := fmt.Sprintf("host-%d.test", i)
		out.VirtualHosts = append(out.VirtualHosts, &routev3.VirtualHost{Name: host, Domains: []string{host}, Routes: answer})
	}
	out.VirtualHosts = append(out.VirtualHosts, &routev3.VirtualHost{Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 200}},
	}}})
	return out
}

func tcpAddress(t *testing.T, address string) *net.TCPAddr {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A controller that stands still, though it keeps its connections, is left for
// another one, and the proxy serves on.
func TestControllerStandsStill(t *testing.T) {
	other := newController(t)
	address := port.AddressOfTest(t)
	pid, still := anotherController(t, tcpAddress(t, address), 1)
	var stopped atomic.Bool
	p := startPod(t, other, func(cfg *Config) {
		cfg.Dial = func(ctx context.Context) (net.Conn, error) {
			if stopped.Load() {
				return other.dial(ctx)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", still)
		}
	})
	p.address = address
	p.untilReady()

	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped.Store(true)
	began := time.Now()
	until(t, "connected to the other", func() bool { return len(other.server.Sessions()) > 0 })
	if took := time.Since(began); took > noticedWithin {
		t.Errorf("noticed after %s", took)
	} else {
		t.Logf("noticed after %s", took)
	}
	if n := p.relay.state().silent; n != 1 {
		t.Errorf("%d connections counted as silent", n)
	}
	if err := p.serves(); err != nil || !p.isReady() {
		t.Errorf("ready %t, %v", p.isReady(), err)
	}
}

// While every processor is busy, and Envoy takes in one large table after the other,
// neither it nor the controller passes for one that stands still.
func TestBusyMachineIsNoStandstill(t *testing.T) {
	slow.Skip(t)
	c := newController(t)
	address := port.AddressOfTest(t)
	_, busy := anotherController(t, tcpAddress(t, address), manyRoutes)
	p := startPod(t, c, func(cfg *Config) {
		cfg.Dial = func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", busy)
		}
	})
	p.address = address
	p.untilReady()
	pid := p.supervisor.Snapshot().PID
	play(t, "load")
	var longest time.Duration
	began := time.Now()
	until(t, "enough", func() bool {
		asked := time.Now()
		if _, err := p.supervisor.Admin(t.Context(), "GET", "/ready"); err != nil {
			t.Error(err)
		}
		longest = max(longest, time.Since(asked))
		if code, text := p.get("/readyz"); code != 200 {
			t.Errorf("not ready: %s", text)
		}
		return time.Since(began) > busyFor
	})
	if s := p.relay.state(); s.succeeded != 1 || s.silent != 0 {
		t.Errorf("%d connections to the controller, of which %d were silent", s.succeeded, s.silent)
	}
	if s := p.supervisor.Snapshot(); s.PID != pid || s.Restarts != 0 {
		t.Errorf("another Envoy: %+v", s)
	}
	stats, err := p.supervisor.Stats(t.Context(), `rds\.routes\.config_reload$`)
	if err != nil {
		t.Fatal(err)
	}
	reloads := stats["http.edge.rds.routes.config_reload"]
	if reloads < 3 {
		t.Errorf("only %d tables were taken in", reloads)
	}
	t.Logf("%d tables; the longest answer of Envoy's admin interface took %s", reloads, longest)
}

// An Envoy that stands still gets no clients, and is replaced.
func TestEnvoyStandsStill(t *testing.T) {
	slow.Skip(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what a thread has used")
	}
	c := newController(t)
	p := startPod(t, c, nil)
	c.apply(listener(t, p.address))
	p.untilReady()
	pid := p.supervisor.Snapshot().PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	until(t, "unready", func() bool {
		code, text := p.get("/readyz")
		return code == 503 && text == "envoy is stalled\n"
	})
	unready := time.Since(began)
	until(t, "gone for the controller", func() bool { return len(c.server.Sessions()) == 0 })
	p.untilReady()
	took := time.Since(began)
	if took > replacedWithin {
		t.Errorf("replaced after %s", took)
	}
	t.Logf("unready after %s, replaced after %s", unready, took)
	if err := p.serves(); err != nil {
		t.Error(err)
	}
	if code, metrics := p.get("/metrics"); code != 200 || p.supervisor.Snapshot().PID == pid {
		t.Errorf("%d %s", code, metrics)
	}
}
