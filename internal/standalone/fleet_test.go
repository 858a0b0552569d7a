package standalone

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// longestWait bounds every wait of these tests; none waits that long.
const longestWait = 20 * time.Second

// served is a Standalone that serves a directory with a Gateway, default/edge.
type served struct {
	*Standalone
	t       *testing.T
	files   string
	state   string
	address string
	binary  proxy.Binary
	drain   time.Duration
	prepare func(*Standalone) // if not nil, is called before it runs
	cancel  context.CancelFunc
	done    chan struct{}
	err     error
}

var edge = object.Name{Namespace: "default", Name: "edge"}

func serve(t *testing.T, drain time.Duration) *served {
	t.Helper()
	s := prepareServed(t, drain)
	s.run()
	s.until("answers", s.answers)
	return s
}

// prepareServed is serve of what doesn't run yet.
func prepareServed(t *testing.T, drain time.Duration) *served {
	t.Helper()
	binary, err := proxy.Find(t.Context(), proxy.FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: the path of a socket must be short.
	dir, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{
		t: t, files: filepath.Join(dir, "files"), state: filepath.Join(dir, "s"),
		address: port.AddressOfTest(t), done: make(chan struct{}),
	}
	if err := os.Mkdir(s.files, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write()
	s.binary, s.drain = binary, drain
	t.Cleanup(func() { os.RemoveAll(dir) })
	return s
}

// run begins a Standalone, which the end of the test ends.
func (s *served) run() {
	s.t.Helper()
	var err error
	s.Standalone, err = New(Options{
		Paths: []string{s.files}, Bind: []string{"127.0.0.1"}, Envoy: s.binary, Concurrency: 1,
		StateDir: s.state, DrainTimeout: s.drain, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if s.prepare != nil {
		s.prepare(s.Standalone)
	}
	earlier := goleak.IgnoreCurrent() // what clients of API servers leave, of other tests
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() {
		s.err = s.Run(ctx)
		close(s.done)
	}()
	s.t.Cleanup(func() {
		s.Hurry()
		s.end()
		goleak.VerifyNone(s.t, earlier)
	})
}

// restart ends a Standalone, and begins the next one.
func (s *served) restart() *served {
	s.t.Helper()
	s.Hurry()
	s.end()
	next := &served{
		t: s.t, files: s.files, state: s.state, address: s.address, binary: s.binary, drain: s.drain, done: make(chan struct{}),
	}
	next.run()
	return next
}

func (s *served) end() {
	s.t.Helper()
	s.cancel()
	<-s.done
	if s.err != nil {
		s.t.Error(s.err)
	}
}

func (s *served) gateway() string { return filepath.Join(s.files, "gateway.yaml") }

func (s *served) write() {
	s.t.Helper()
	if err := os.WriteFile(s.gateway(), []byte(s.text()), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// text is the Gateway.
func (s *served) text() string {
	s.t.Helper()
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: gatehouse
  listeners: [{name: http, port: %s, protocol: HTTP}]
`, port)
}

// until polls: there is no event to wait for in what other processes do.
func (s *served) until(what string, ok func() bool) {
	s.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(longestWait); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			s.t.Fatalf("not so: %s", what)
		}
	}
}

// answers says whether the Gateway answers; without routes, that is a 404.
func (s *served) answers() bool {
	client := http.Client{Timeout: longestWait, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.address)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusNotFound
}

func (s *served) pid() int { return s.fleet.Snapshot()[edge].PID }

// directories returns what there is of Gateways in the state directory.
func (s *served) directories() []string {
	entries, err := os.ReadDir(filepath.Join(s.state, "g"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (s *served) leaving() int { return s.fleet.Leaving() }

// Gateways that come and go leave nothing behind, neither on disk nor in memory.
func TestRemovedGatewayLeavesNothing(t *testing.T) {
	s := serve(t, time.Second)
	for range 2 {
		if err := os.Remove(s.gateway()); err != nil {
			t.Fatal(err)
		}
		s.until("nothing is left", func() bool { return s.pid() == 0 && len(s.directories()) == 0 && s.leaving() == 0 })
		s.write()
		s.until("answers again", s.answers)
	}
	// A removal that is taken back while the old Envoy drains.
	if err := os.Remove(s.gateway()); err != nil {
		t.Fatal(err)
	}
	s.until("leaving", func() bool { return s.leaving() > 0 || len(s.directories()) == 0 })
	s.write()
	s.until("answers again", func() bool { return s.answers() && s.leaving() == 0 })
	s.end()
	if left := s.directories(); len(left) > 0 {
		t.Errorf("a run that has ended leaves %v", left)
	}
}

// An Envoy that dies after the state directory was deleted comes back and finds
// its configuration.
func TestStateDirectoryDeleted(t *testing.T) {
	s := serve(t, time.Second)
	pid := s.pid()
	if err := os.RemoveAll(s.state); err != nil {
		t.Fatal(err)
	}
	if !s.answers() {
		t.Error("Envoy does not answer any more")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.until("another Envoy answers", func() bool { now := s.pid(); return now != 0 && now != pid && s.answers() })
}

// A second Ctrl-C ends what waits for clients, even if it comes early.
func TestHurry(t *testing.T) {
	for name, early := range map[string]func(*served){
		"while draining": func(s *served) {
			s.cancel()
			s.until("draining", func() bool { return !s.answers() })
		},
		"before": func(*served) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, 10*time.Minute)
			conn, err := net.Dial("tcp", s.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer := make([]byte, 12)
			if _, err := conn.Read(answer); err != nil || !strings.HasSuffix(string(answer), "404") {
				t.Fatalf("%q: %v", answer, err)
			}
			early(s)
			began := time.Now()
			s.Hurry()
			s.end()
			if took := time.Since(began); took > longestWait {
				t.Errorf("ended after %s", took)
			}
		})
	}
}
