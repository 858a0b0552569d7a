package extension

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	extensionv1alpha1 "github.com/gatehouse-dev/gatehouse/api/extension/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a real extension server, which adds a header to each virtual host.
type server struct {
	extensionv1alpha1.UnimplementedExtensionServer
	socket string
	grpc   *grpc.Server

	mu      sync.Mutex
	hangs   bool
	hangsAt string // about which hosts it says nothing, a prefix
	asked   []string
}

func (s *server) Change(ctx context.Context, r *extensionv1alpha1.ChangeRequest) (*extensionv1alpha1.ChangeResponse, error) {
	s.mu.Lock()
	hangs := s.hangs || s.hangsAt != "" && strings.HasPrefix(r.Name, s.hangsAt)
	s.asked = append(s.asked, r.Name)
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &extensionv1alpha1.ChangeResponse{Change: &extensionv1alpha1.ChangeResponse_Patch{
		Patch: `[{"op": "add", "path": "/response_headers_to_add", "value": [{"header": {"key": "x-hook", "value": "yes"}}]}]`,
	}}, nil
}

func (s *server) set(hangs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs, s.asked = hangs, nil
}

func (s *server) start(t *testing.T) {
	t.Helper()
	lis, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	s.grpc = grpc.NewServer()
	extensionv1alpha1.RegisterExtensionServer(s.grpc, s)
	go func() { _ = s.grpc.Serve(lis) }()
	t.Cleanup(s.grpc.Stop)
}

func (s *server) stop() {
	s.grpc.Stop()
	_ = os.Remove(s.socket)
}

// proxies are what the xDS server would have.
type proxies struct {
	mu    sync.Mutex
	has   map[xds.Ref]*envoy.Resource
	wrong []string
}

func (p *proxies) apply(updates []xds.Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range updates {
		for _, r := range u.Set {
			p.has[xds.Ref{Type: r.Type, Name: r.Name}] = r
		}
		for _, ref := range u.Remove {
			delete(p.has, ref)
		}
	}
}

// host returns how a host of the table is.
func (p *proxies) host(domain string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.has[xds.Ref{Type: envoy.Routes, Name: "t"}]
	if r == nil {
		return "nothing"
	}
	for _, part := range r.Parts() {
		if part.Name != domain {
			continue
		}
		text := ""
		for _, word := range []string{"x-hook", "first.example", "second.example"} {
			if strings.Contains(string(part.Body), word) {
				text += " " + word
			}
		}
		if text == "" {
			return "unserved"
		}
		return text[1:]
	}
	return "missing"
}

func (p *proxies) hasRef(ref xds.Ref) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.has[ref] != nil
}

var gatewayName = object.Name{Namespace: "shop", Name: "gw"}

// run starts a server and a stage in front of proxies.
func run(t *testing.T, mode FailureMode) (*server, *Stage, *proxies) {
	t.Helper()
	s := &server{socket: filepath.Join(t.TempDir(), "s")}
	s.start(t)
	stage, p := stageFor(t, s, mode)
	return s, stage, p
}

func stageFor(t *testing.T, s *server, mode FailureMode) (*Stage, *proxies) {
	t.Helper()
	p := &proxies{has: map[xds.Ref]*envoy.Resource{}}
	stage, err := New(Config{
		Extensions: []Options{{Name: "test", Address: "unix://" + s.socket, Hooks: []Hook{VirtualHost}, FailureMode: mode, Timeout: metav1.Duration{Duration: 300 * time.Millisecond}}},
		Apply:      p.apply, Log: slog.New(slog.DiscardHandler),
		Tell: func(_ context.Context, _ object.Name, wrong []string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.wrong = wrong
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = stage.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return stage, p
}

// host is a virtual host that redirects.
func host(t *testing.T, domain, to string) *envoy.Part {
	t.Helper()
	part, errs := envoy.HostPart(&ir.Host{Domain: domain, Rules: []*ir.Rule{{Match: ir.Match{Path: ir.PathMatch{Kind: ir.PathPrefix, Value: "/"}}, Redirect: &ir.Redirect{Hostname: to, Status: 302}}}})
	if part == nil || len(errs) > 0 {
		t.Fatal(errs)
	}
	return part
}

func table(parts ...*envoy.Part) *envoy.Resource { return envoy.RouteTable("t", parts) }

func set(resources ...*envoy.Resource) []xds.Update {
	return []xds.Update{{Gateway: gatewayName, Set: resources}}
}

func eventually(t *testing.T, what, want string, got func() string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for got() != want {
		if time.Now().After(deadline) {
			t.Fatalf("%s is %q, want %q", what, got(), want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (p *proxies) becomes(t *testing.T, domain, want string) {
	t.Helper()
	eventually(t, domain, want, func() string { return p.host(domain) })
}

// idle waits until a stage has nothing to do.
func idle(t *testing.T, stage *Stage) {
	t.Helper()
	eventually(t, "work", "false", func() string {
		stage.mu.Lock()
		g := stage.gateways[gatewayName]
		stage.mu.Unlock()
		g.mu.Lock()
		defer g.mu.Unlock()
		return fmt.Sprint(g.busy)
	})
}

// TestClosed protects those whose extension guards something: what changes while it is away stays as it was, with what it refers
// to, but for what would let more pass; what is new isn't served; and all is taken up when it is back.
func TestClosed(t *testing.T) {
	server, stage, p := run(t, Closed)
	// What stays as it was names one of these clusters.
	old, unused := envoy.NewResource(envoy.Clusters, "first.example", []byte("old")), envoy.NewResource(envoy.Clusters, "unused", []byte("unused"))
	guarded, other := host(t, "guarded.test", "first.example"), host(t, "guarded.test", "second.example")
	other.Guard = envoy.Guard{{By: 7}}
	stage.Apply(set(old, unused, table(guarded, host(t, "plain.test", "first.example"))))
	p.becomes(t, "plain.test", "x-hook first.example")
	server.stop()

	stage.Apply([]xds.Update{{
		Gateway: gatewayName, Set: []*envoy.Resource{table(other, host(t, "new.test", "first.example"), host(t, "plain.test", "second.example"))},
		Remove: []xds.Ref{{Type: envoy.Clusters, Name: "first.example"}, {Type: envoy.Clusters, Name: "unused"}},
	}})
	p.becomes(t, "new.test", "unserved")
	p.becomes(t, "guarded.test", "unserved")
	p.becomes(t, "plain.test", "x-hook first.example")
	if !p.hasRef(xds.Ref{Type: envoy.Clusters, Name: "first.example"}) {
		t.Error("what the last version refers to is removed")
	}
	if p.hasRef(xds.Ref{Type: envoy.Clusters, Name: "unused"}) {
		t.Error("what nothing refers to stays")
	}
	eventually(t, "what is told", "3", func() string { p.mu.Lock(); defer p.mu.Unlock(); return fmt.Sprint(len(p.wrong)) })

	// Endpoints that come back while their removal is held stay.
	back := xds.Ref{Type: envoy.Endpoints, Name: "first.example"}
	stage.Apply(set(envoy.EmptyEndpoints("first.example")))
	idle(t, stage)
	stage.Apply([]xds.Update{{Gateway: gatewayName, Remove: []xds.Ref{back}}})
	idle(t, stage)
	stage.Apply(set(envoy.EmptyEndpoints("first.example")))

	server.start(t)
	p.becomes(t, "plain.test", "x-hook second.example")
	p.becomes(t, "guarded.test", "x-hook second.example")
	p.becomes(t, "new.test", "x-hook first.example")
	eventually(t, "the old cluster", "false", func() string { return fmt.Sprint(p.hasRef(xds.Ref{Type: envoy.Clusters, Name: "first.example"})) })
	if !p.hasRef(back) {
		t.Error("endpoints that came back are removed")
	}
	eventually(t, "what is told", "0", func() string { p.mu.Lock(); defer p.mu.Unlock(); return fmt.Sprint(len(p.wrong)) })
}

// TestStartWithoutServer protects proxies that serve while the controller starts and a server is away: with Open they are told at once,
// with Closed nothing, until there is an answer.
func TestStartWithoutServer(t *testing.T) {
	for mode, want := range map[FailureMode]string{Open: "first.example", Closed: "nothing"} {
		t.Run(string(mode), func(t *testing.T) {
			s := &server{socket: filepath.Join(t.TempDir(), "s")}
			stage, p := stageFor(t, s, mode)
			began := time.Now()
			stage.Apply(set(table(host(t, "a.test", "first.example"))))
			eventually(t, "what is told", "1", func() string { p.mu.Lock(); defer p.mu.Unlock(); return fmt.Sprint(len(p.wrong)) })
			p.becomes(t, "a.test", want)
			if took := time.Since(began); took > 200*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			s.start(t)
			p.becomes(t, "a.test", "x-hook first.example")
		})
	}
}

// TestSlowServer protects a Gateway's proxies from a server that says nothing: endpoints don't wait, other updates once, for one
// timeout, and none of other Gateways does.
func TestSlowServer(t *testing.T) {
	server, stage, p := run(t, Open)
	hosts := func(to string) *envoy.Resource {
		var parts []*envoy.Part
		for i := range 8 {
			parts = append(parts, host(t, fmt.Sprintf("h%d.test", i), to))
		}
		return table(parts...)
	}
	stage.Apply(set(hosts("first.example")))
	p.becomes(t, "h7.test", "x-hook first.example")

	server.set(true)
	began := time.Now()
	stage.Apply(set(hosts("second.example")))
	stage.Apply(set(envoy.EmptyEndpoints("e")))
	if !p.hasRef(xds.Ref{Type: envoy.Endpoints, Name: "e"}) {
		t.Error("endpoints wait")
	}
	elsewhere := envoy.NewResource(envoy.Secrets, "s", []byte("s"))
	stage.Apply([]xds.Update{{Gateway: object.Name{Namespace: "a", Name: "b"}, Set: []*envoy.Resource{elsewhere}}})
	eventually(t, "the other Gateway", "true", func() string { return fmt.Sprint(p.hasRef(xds.Ref{Type: envoy.Secrets, Name: "s"})) })
	if took := time.Since(began); took > 200*time.Millisecond {
		t.Errorf("another Gateway waits %v", took)
	}
	p.becomes(t, "h7.test", "second.example")
	if took := time.Since(began); took > time.Second {
		t.Errorf("the update waits %v", took)
	}
	began = time.Now()
	stage.Apply(set(hosts("first.example")))
	p.becomes(t, "h7.test", "x-hook first.example") // as it was answered before
	if took := time.Since(began); took > 200*time.Millisecond {
		t.Errorf("the next update waits %v", took)
	}
	stage.Apply(set(hosts("second.example")))
	p.becomes(t, "h7.test", "second.example")
	server.set(false)
	p.becomes(t, "h7.test", "x-hook second.example")
}

// TestAskedOnce protects a server from questions that it has answered.
func TestAskedOnce(t *testing.T) {
	server, stage, p := run(t, Open)
	stage.Apply(set(table(host(t, "a.test", "first.example"), host(t, "b.test", "first.example"))))
	p.becomes(t, "b.test", "x-hook first.example")
	server.set(false)
	stage.Apply(set(table(host(t, "a.test", "second.example"), host(t, "b.test", "first.example"))))
	p.becomes(t, "a.test", "x-hook second.example")
	server.mu.Lock()
	defer server.mu.Unlock()
	if !slices.Equal(server.asked, []string{"a.test"}) {
		t.Errorf("an edit of a.test asks about %v", server.asked)
	}
}

// TestGone protects against a Gateway's past: one of its name that comes later is another one.
func TestGone(t *testing.T) {
	_, stage, p := run(t, Closed)
	stage.Apply(set(table(host(t, "a.test", "first.example"))))
	p.becomes(t, "a.test", "x-hook first.example")
	stage.Apply([]xds.Update{{Gateway: gatewayName, Gone: true}, {Gateway: gatewayName, Set: []*envoy.Resource{table(host(t, "a.test", "first.example"), host(t, "b.test", "second.example"))}}})
	p.becomes(t, "b.test", "x-hook second.example")
	stage.Apply([]xds.Update{{Gateway: gatewayName, Gone: true}})
	eventually(t, "Gateways", "0", func() string { stage.mu.Lock(); defer stage.mu.Unlock(); return fmt.Sprint(len(stage.gateways)) })
}

// TestSilentAboutSome protects all others from hosts of which a server says nothing, be they many: it isn't away. What is said of them
// once it says something is taken up.
func TestSilentAboutSome(t *testing.T) {
	server, stage, p := run(t, Closed)
	server.mu.Lock()
	server.hangsAt = "slow"
	server.mu.Unlock()
	stage.Apply(set(table(host(t, "a.test", "first.example"))))
	p.becomes(t, "a.test", "x-hook first.example")
	parts := []*envoy.Part{host(t, "a.test", "second.example"), host(t, "b.test", "second.example")}
	for i := range 2 * mostFailures {
		parts = append(parts, host(t, fmt.Sprintf("slow%d.test", i), "first.example"))
	}
	stage.Apply(set(table(parts...)))
	p.becomes(t, "slow0.test", "unserved")
	p.becomes(t, "b.test", "x-hook second.example")
	parts[1] = host(t, "b.test", "first.example")
	stage.Apply(set(table(parts...)))
	p.becomes(t, "b.test", "x-hook first.example")
	server.mu.Lock()
	server.hangsAt = ""
	server.mu.Unlock()
	for i := range 2 * mostFailures {
		p.becomes(t, fmt.Sprintf("slow%d.test", i), "x-hook first.example")
	}
}

// TestEndpointsInOrder protects requests from endpoints that have gone: what is newer doesn't overtake what waits.
func TestEndpointsInOrder(t *testing.T) {
	server, stage, p := run(t, Open)
	stage.Apply(set(table(host(t, "a.test", "first.example"))))
	p.becomes(t, "a.test", "x-hook first.example")
	server.set(true)
	endpoints := func(body string) *envoy.Resource { return envoy.NewResource(envoy.Endpoints, "e", []byte(body)) }
	ref := xds.Ref{Type: envoy.Endpoints, Name: "e"}
	stage.Apply([]xds.Update{{Gateway: gatewayName, Set: []*envoy.Resource{table(host(t, "a.test", "second.example"))}, Remove: []xds.Ref{ref}}})
	eventually(t, "what is asked", "[a.test]", func() string { server.mu.Lock(); defer server.mu.Unlock(); return fmt.Sprint(server.asked) })
	stage.Apply(set(endpoints("v2"), table(host(t, "b.test", "first.example"))))
	// While the servers are asked about the second of these.
	eventually(t, "the first", "second.example", func() string { return p.host("a.test") })
	stage.Apply(set(endpoints("v3")))
	idle(t, stage)
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := string(p.has[ref].Body()); got != "v3" {
		t.Errorf("proxies have %s", got)
	}
}
