package loop

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// served is the real Envoy of a Gateway. It outlives the loops that it gets its configuration from.
type served struct {
	*proxy.Supervisor
	t       *testing.T
	gateway object.Name
	port    int
	dir     string
	client  http.Client
	end     func()
}

func newServed(t *testing.T, gateway object.Name) *served {
	t.Helper()
	binary, err := proxy.Find(t.Context(), proxy.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "gh") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, gateway: gateway, port: port.OfTest(t), dir: dir}
	s.client = http.Client{
		Timeout: longestWait, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.Supervisor = proxy.New(proxy.Config{
		Gateway: s.gateway, Dir: filepath.Join(dir, "e"), Binary: binary, XDSSocket: s.socket(), Concurrency: 1,
		Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	s.end = func() {
		s.Hurry()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	}
	return s
}

func (s *served) socket() string { return filepath.Join(s.dir, "x.sock") }

// answer is the status of a request's answer, and where that leads; no answer is 0.
func (s *served) answer() string {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d", s.port), http.NoBody)
	if err != nil {
		s.t.Error(err)
		return ""
	}
	req.Host = "h.test"
	res, err := s.client.Do(req)
	if err != nil {
		return "0"
	}
	defer res.Body.Close()
	to, _ := res.Location()
	if to == nil {
		return fmt.Sprint(res.StatusCode)
	}
	return fmt.Sprint(res.StatusCode, " ", to.Hostname())
}

// objects are a Gateway and its route to a host.
func (s *served) objects(host string) (*gwv1.Gateway, *gwv1.HTTPRoute) {
	g, r := gateway(s.gateway.Name, gwv1.PortNumber(s.port), ""), route(s.gateway.Name, host) //nolint:gosec // a port
	r.Spec.Hostnames = []gwv1.Hostname{"h.test"}
	g.Namespace, r.Namespace = s.gateway.Namespace, s.gateway.Namespace
	return g, r
}

// serve lets an Envoy connect. cut ends its connection.
func (r *running) serve(s *served) (cut func()) {
	r.t.Helper()
	socket, err := proxy.ListenSocket(s.socket(), r.Log)
	if err != nil {
		r.t.Fatal(err)
	}
	r.group.Go(func() { _ = r.Server.Serve(r.running, socket, s.gateway) })
	return socket.Cut
}

// session is the number of the connection of a Gateway's Envoy, once it has asked for something; 0 for none.
func (r *running) session(s *served) uint64 {
	for _, info := range r.Server.Sessions() {
		if info.Gateway == s.gateway.String() && len(info.Types) > 0 {
			return info.ID
		}
	}
	return 0
}

// A new guard can't be computed, and an edit comes with it. Whatever becomes of Envoy and of the control plane
// meanwhile, the edit is never served without the guard, and other Gateways go on.
func TestEnvoyWhileItsGatewayIsWithheld(t *testing.T) {
	for _, at := range []struct{ table, about string }{
		{"topology-auth-policies", "a/office"}, {"port-filters", "a/web"}, {"virtual-hosts", "a/web"},
	} {
		t.Run(at.table, func(t *testing.T) { withholdsFrom(t, at.table, at.about) })
	}
}

func withholdsFrom(t *testing.T, table, about string) {
	t.Helper()
	r := run(t)
	web, other := newServed(t, object.Name{Namespace: "a", Name: "web"}), newServed(t, object.Name{Namespace: "b", Name: "other"})
	defer other.end()
	defer web.end()
	cut := r.serve(web)
	r.serve(other)
	gateway, first := web.objects("first.test")
	others, route := other.objects("first.test")
	r.take(gateway, first, others, route)
	const before, closed = "302 first.test", "403"
	edits := 0
	// edit edits the other Gateway, which shows that what came before has been told to proxies.
	edit := func() {
		t.Helper()
		edits++
		host := fmt.Sprintf("edit-%d.test", edits)
		_, route := other.objects(host)
		r.take(route)
		r.until("the other Gateway is served "+host, func() bool { return other.answer() == "302 "+host })
	}
	serves := func(when, want string) {
		t.Helper()
		r.until(fmt.Sprintf("%s: Envoy answers %s", when, want), func() bool { return web.answer() == want })
	}
	serves("at first", before)
	done, stop := make(chan struct{}), make(chan struct{})
	defer sync.OnceFunc(func() { close(stop); <-done })()
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got := web.answer(); got != before && got != closed && got != "0" {
				t.Errorf("an edit is served without its guard: %s", got)
				return
			}
		}
	}()

	r.trip([]string{table}, about)
	_, second := web.objects("second.test")
	r.take(office("web", "10.0.0.0/24"), second)
	edit()
	if got := web.answer(); got != before {
		t.Errorf("Envoy answers %s", got)
	}
	was := r.session(web)
	cut()
	r.until("Envoy has connected again", func() bool { now := r.session(web); return now != 0 && now != was })
	edit()
	serves("connected again", before)
	pid := web.Snapshot().PID
	kill := func() {
		t.Helper()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r.until("another Envoy runs", func() bool { now := web.Snapshot().PID; return now != 0 && now != pid })
		pid = web.Snapshot().PID
	}
	kill()
	serves("started anew", before)

	r.stop()
	r = run(t)
	r.trip([]string{table}, about)
	gateway, _ = web.objects("")
	others, _ = other.objects("")
	r.take(gateway, others, second.DeepCopy(), office("web", "10.0.0.0/24"))
	r.serve(web)
	r.serve(other)
	r.until("Envoy has connected to the next control plane", func() bool { return r.session(web) != 0 })
	edit()
	if got := web.answer(); got != before {
		t.Errorf("with the next control plane Envoy answers %s", got)
	}
	was = r.session(web)
	kill()
	r.until("the next Envoy has connected to it", func() bool { now := r.session(web); return now != 0 && now != was })
	edit()
	if got := web.answer(); got != "0" || web.Snapshot().Live {
		t.Errorf("an Envoy that has nothing answers %s", got)
	}

	r.trip(nil, "")
	_, third := web.objects("third.test")
	r.take(office("web", "10.0.1.0/24"), third)
	edit()
	serves("once nothing fails", closed)
}
