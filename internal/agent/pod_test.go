package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	commonfaultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
	"github.com/gatehouse-dev/gatehouse/test/output"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

var gateway = object.Name{Namespace: "default", Name: "edge"}

const (
	// patience bounds every wait of these tests; none waits that long.
	patience = 20 * time.Second
	// service is how long a request takes.
	service = 20 * time.Millisecond
)

var binary proxy.Binary

func TestMain(m *testing.M) {
	if play := parts[os.Getenv(partEnv)]; play != nil {
		play()
		return
	}
	var err error
	binary, err = proxy.Find(context.Background(), proxy.FindOptions{})
	if errors.Is(err, proxy.ErrNotFound) {
		binary, err = proxy.Install(context.Background(), proxy.InstallOptions{Progress: os.Stderr})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "these tests need the real Envoy:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// controller is a control plane that can go away and come back.
type controller struct {
	t       *testing.T
	address string
	server  *xds.Server
	stop    func()
}

func newController(t *testing.T) *controller {
	c := &controller{t: t, address: port.AddressOfTest(t)}
	c.start()
	t.Cleanup(func() { c.stop() })
	return c
}

// start is a new process: it remembers nothing.
func (c *controller) start() {
	c.t.Helper()
	l := port.Listen(c.t, c.address)
	c.server = xds.New(xds.Options{Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- c.server.Serve(ctx, l, gateway) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			c.t.Error(err)
		}
		c.server.Stop()
	})
}

func (c *controller) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", c.address)
}

func (c *controller) apply(set ...*envoy.Resource) {
	c.server.Apply([]xds.Update{{Gateway: gateway, Set: set}})
}

// sent counts the resources that the connected proxy was sent.
func (c *controller) sent() (n uint64) {
	for _, session := range c.server.Sessions() {
		for _, t := range session.Types {
			n += t.Sent
		}
	}
	return n
}

// pod is an agent with a real Envoy.
type pod struct {
	*Agent
	t       *testing.T
	address string // of its listener
	health  string
	cancel  context.CancelFunc
	done    chan struct{}
	err     error
	log     output.Buffer
}

func startPod(t *testing.T, c *controller, change func(*Config)) *pod {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	health, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pod{t: t, address: port.AddressOfTest(t), health: "http://" + health.Addr().String(), done: make(chan struct{})}
	cfg := Config{
		Gateway: gateway, Dial: c.dial, StateDir: dir, Binary: binary, Concurrency: 1,
		Health: health, DrainTimeout: patience,
		Log: slog.New(slog.NewTextHandler(&p.log, nil)), Output: func(l proxy.Line) { fmt.Fprintln(&p.log, l.Text) },
	}
	if change != nil {
		change(&cfg)
	}
	p.Agent = New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		p.err = p.Run(ctx)
	}()
	t.Cleanup(func() {
		p.Hurry()
		p.stop()
		if t.Failed() {
			t.Logf("pod %s:\n%s", p.address, p.log.String())
		}
	})
	return p
}

// stop is what the cluster does to a pod; it returns when the pod has ended.
func (p *pod) stop() {
	p.t.Helper()
	p.cancel()
	select {
	case <-p.done:
	case <-time.After(2 * patience):
		p.t.Fatal("the pod does not end")
	}
	if p.err != nil {
		p.t.Error(p.err)
	}
}

func (p *pod) get(path string) (int, string) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(p.health + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

func (p *pod) isReady() bool {
	code, _ := p.get("/readyz")
	return code == http.StatusOK
}

func (p *pod) untilReady() {
	p.t.Helper()
	until(p.t, "ready", p.isReady)
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not %s after %s", what, patience)
		}
	}
}

// listener answers every request on the address with 200, after the time of a
// service.
func listener(t *testing.T, address string) *envoy.Resource {
	t.Helper()
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	hcm := &hcmv3.HttpConnectionManager{
		StatPrefix: "edge",
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			VirtualHosts: []*routev3.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 200}},
			}}}},
		}},
		HttpFilters: []*hcmv3.HttpFilter{
			{Name: "fault", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(t, &faultv3.HTTPFault{
				Delay: &commonfaultv3.FaultDelay{
					FaultDelaySecifier: &commonfaultv3.FaultDelay_FixedDelay{FixedDelay: durationpb.New(service)},
					Percentage:         &typev3.FractionalPercent{Numerator: 100},
				},
			})}},
			{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(t, &routerv3.Router{})}},
		},
	}
	l := &listenerv3.Listener{
		Name: "edge",
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: addr.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(addr.Port)},
		}}},
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(t, hcm)},
		}}}},
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return envoy.NewResource(envoy.Listeners, l.Name, raw)
}

func pack(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serves says whether a new client gets an answer.
func (p *pod) serves() error {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + p.address)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}
