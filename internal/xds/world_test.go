package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/test/output"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// world is a server, a real Envoy connected to it, and a backend that answers
// with the path that it gets.
type world struct {
	*harness
	dir     string
	socket  string
	port    uint16
	backend *httptest.Server
	client  *http.Client
	stop    context.CancelFunc
	output  output.Buffer // of Envoy
}

func realWorld(t *testing.T, options ...func(*Options)) *world {
	t.Helper()
	binary, err := proxy.Find(t.Context(), proxy.FindOptions{})
	if errors.Is(err, proxy.ErrNotFound) {
		binary, err = proxy.Install(t.Context(), proxy.InstallOptions{Progress: os.Stderr})
	}
	if err != nil {
		t.Fatalf("this test needs the real Envoy: %v", err)
	}
	dir, err := os.MkdirTemp("", "xds") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{dir: dir, socket: filepath.Join(dir, "xds.sock"), port: uint16(port.OfTest(t)), client: &http.Client{
		Timeout:   patience,
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}}
	w.backend = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(rw, r.URL.Path)
	}))
	t.Cleanup(w.backend.Close)
	t.Cleanup(w.client.CloseIdleConnections)
	w.serveOn(t, options...)
	w.run(t, binary.Path)
	return w
}

// serveOn starts a new server on the socket.
func (w *world) serveOn(t *testing.T, options ...func(*Options)) {
	t.Helper()
	w.harness = &harness{t: t, states: make(chan State, 10_000)}
	h := w.harness
	o := Options{OnState: func(_ object.Name, s State) { h.states <- s }}
	for _, f := range options {
		f(&o)
	}
	h.server = New(o)
	lis, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- h.server.Serve(ctx, lis, gw) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		h.server.Stop()
	})
	t.Cleanup(w.stop)
}

// run starts Envoy.
func (w *world) run(t *testing.T, binary string) {
	t.Helper()
	config, err := proxy.Bootstrap(proxy.BootstrapOptions{
		Gateway: gw, XDSSocket: w.socket, AdminSocket: filepath.Join(w.dir, "admin.sock"),
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.dir, "bootstrap.json")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-c", path, "--disable-hot-restart", "--concurrency", "1", "--log-level", "warning")
	cmd.Stdout, cmd.Stderr = &w.output, &w.output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Envoy:\n%s", w.output.String())
		}
	})
}

func must[T any](t *testing.T, v T, errs ...error) T {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return v
}

func (w *world) httpListener(name string, port uint16) *envoy.Resource {
	r, errs := envoy.Listener(name, &ir.Listener{
		Name: name, Port: port, BindPort: port, Addresses: []string{"127.0.0.1"}, Chains: []ir.Chain{{Table: "t"}},
	})
	return must(w.t, r, errs...)
}

// destination is a cluster with its endpoints.
func (w *world) destination(name string) []any {
	c, err := envoy.Cluster(&ir.Backend{Named: name, Protocol: ir.HTTP1})
	must(w.t, c, err)
	at := netip.MustParseAddrPort(w.backend.Listener.Addr().String())
	e, err := envoy.LoadAssignment(name, []ir.Endpoint{{
		Address: at.Addr().String(), Port: at.Port(),
	}})
	return []any{c, must(w.t, e, err)}
}

// host answers 200 by way of a cluster, with a path that tells its version.
func (w *world) host(domain, cluster, version string) *envoy.Part {
	p, errs := envoy.HostPart(&ir.Host{Domain: domain, Rules: []*ir.Rule{{
		Source:   ir.Source{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "default", Name: domain}},
		Match:    ir.Match{Path: ir.PathMatch{Kind: ir.PathPrefix, Value: "/"}},
		Backends: []ir.WeightedBackend{{Backend: ir.NamedBackend(cluster), Weight: 1}},
		Filters:  ir.Filters{Rewrite: &ir.Rewrite{Path: &ir.PathRewrite{Full: true, Value: "/" + version}}},
	}}})
	if len(errs) > 0 {
		w.t.Fatal(errs)
	}
	return p
}

// badHost satisfies the rules of the protos, and Envoy refuses it.
func badHost(domain, regex string) *envoy.Part {
	b := marshal(&routev3.VirtualHost{Name: domain, Domains: []string{domain}, Routes: []*routev3.Route{{
		Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_SafeRegex{
			SafeRegex: &matcherv3.RegexMatcher{Regex: regex},
		}},
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 200}},
	}}})
	body := protowire.AppendBytes(protowire.AppendTag(nil, virtualHosts, protowire.BytesType), b)
	return &envoy.Part{Name: domain, Hash: envoy.Sum(body), Body: body}
}

// changed returns a resource with a field or two of its message changed.
func changedResource[M proto.Message](t *testing.T, r *envoy.Resource, m M, change func(M)) *envoy.Resource {
	t.Helper()
	if err := proto.Unmarshal(r.Body(), m); err != nil {
		t.Fatal(err)
	}
	change(m)
	return envoy.NewResource(r.Type, r.Name, marshal(m))
}

// get returns the status and, for 200, the body.
func (w *world) get(host string) string { return w.getAt(w.port, host) }

func (w *world) getAt(port uint16, host string) string { return w.getBy("http", port, host) }

func (w *world) getBy(scheme string, port uint16, host string) string {
	req, err := http.NewRequest(http.MethodGet, scheme+"://127.0.0.1:"+strconv.Itoa(int(port)), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Host = host
	res, err := w.client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode == http.StatusOK {
		return string(b)
	}
	return res.Status[:3]
}

// crowd has four clients do something again and again until stop, which waits for them.
func crowd(do func()) (stop func()) {
	done := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				do()
			}
		})
	}
	return func() {
		close(done)
		clients.Wait()
	}
}

func (w *world) serves(host, want string) {
	w.t.Helper()
	waitFor(w.t, host+" serves "+want, func() bool { return w.get(host) == want })
}

// config is a listener and a table of hosts a, b, c, … with a cluster each.
func (w *world) config(n int) (all []any, parts []*envoy.Part) {
	for i := range n {
		name := fmt.Sprintf("h%03d", i)
		all = append(all, w.destination(name)...)
		parts = append(parts, w.host(name, name, "1"))
	}
	return append(all, w.httpListener("http", w.port), envoy.RouteTable("t", parts)), parts
}
