package replicas_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/replicas"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
	"github.com/gatehouse-dev/gatehouse/test/output"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leader is a replica that receives what others say.
type leader struct {
	*httptest.Server
	leads atomic.Bool
	tries atomic.Int32 // while it doesn't lead

	mu   sync.Mutex
	text *output.Buffer       // the process's own log
	said map[string]xds.State // "replica gateway"; the zero State is none
	log  []string             // in order
	gone int
}

func newLeader(t *testing.T) *leader {
	l := &leader{said: map[string]xds.State{}, text: &output.Buffer{}}
	l.leads.Store(true)
	handler := replicas.NewHandler(replicas.HandlerOptions{
		Replica: func(r *http.Request) (string, error) {
			if r.TLS == nil || r.ProtoMajor != 2 {
				return "", errors.New("not over TLS and HTTP/2")
			}
			return r.TLS.ServerName, nil
		},
		Leads: func() bool {
			if l.leads.Load() {
				return true
			}
			l.tries.Add(1)
			return false
		},
		Said: func(replica string, gateway object.Name, state xds.State) {
			l.mu.Lock()
			defer l.mu.Unlock()
			key := replica + " " + gateway.String()
			l.said[key] = state
			if state.Connected == 0 {
				delete(l.said, key)
			}
			l.log = append(l.log, fmt.Sprintf("%s %d", key, state.Connected))
		},
		Gone: func(replica string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.gone++
			for key := range l.said {
				if strings.HasPrefix(key, replica+" ") {
					delete(l.said, key)
				}
			}
		},
		Log: slog.New(slog.NewTextHandler(l.text, nil)),
	})
	mux := http.NewServeMux()
	mux.Handle("POST "+replicas.Path, handler)
	l.Server = httptest.NewUnstartedServer(mux)
	l.EnableHTTP2 = true
	l.StartTLS()
	t.Cleanup(func() {
		l.CloseClientConnections()
		l.Close()
	})
	return l
}

func (l *leader) address() string { return strings.TrimPrefix(l.URL, "https://") }

func (l *leader) heard() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int{}
	for key, s := range l.said {
		out[key] = s.Connected
	}
	return out
}

// follower runs a client that takes what elect gives it for the leader.
type follower struct {
	*replicas.Client
	leader atomic.Pointer[leader]
	log    bytes.Buffer // to be read when it has ended
	stop   func()
}

func newFollower(t *testing.T, name string) *follower {
	f := &follower{}
	f.Client = replicas.NewClient(replicas.ClientOptions{
		Leader: func() string {
			if l := f.leader.Load(); l != nil {
				return l.address()
			}
			return ""
		},
		TLS: func() (*tls.Config, error) {
			l := f.leader.Load()
			if l == nil {
				return nil, errors.New("no leader")
			}
			config := l.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			config.ServerName = name + ".example.com"
			return config, nil
		},
		Log: slog.New(slog.NewTextHandler(&f.log, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	f.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(f.stop)
	return f
}

// gw returns the name that a text says.
func gw(text string) object.Name {
	name, ok := object.ParseName(text)
	if !ok {
		panic(text + " is not NAMESPACE/NAME")
	}
	return name
}

func proxies(n int) xds.State {
	return xds.State{Connected: n, Listeners: map[string]string{"http-80": "1"}}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it doesn't come true that %s", what)
		}
	}
}

func hears(t *testing.T, l *leader, want map[string]int) {
	t.Helper()
	eventually(t, fmt.Sprintf("the leader hears %v", want), func() bool { return cmp.Equal(l.heard(), want) })
}

// TestSend says that the leader gets what followers say, the last state of each
// Gateway, whenever it was said.
func TestSend(t *testing.T) {
	t.Parallel()
	l := newLeader(t)
	one, two := newFollower(t, "one"), newFollower(t, "two")
	one.Send(gw("ns/a"), proxies(1)) // before there is a leader
	one.Send(gw("ns/b"), proxies(1))
	one.Send(gw("ns/a"), proxies(2))
	one.leader.Store(l)
	two.leader.Store(l)
	hears(t, l, map[string]int{"one.example.com ns/a": 2, "one.example.com ns/b": 1})
	two.Send(gw("ns/a"), proxies(5))
	hears(t, l, map[string]int{"one.example.com ns/a": 2, "one.example.com ns/b": 1, "two.example.com ns/a": 5})
	one.Forget(gw("ns/b"))
	hears(t, l, map[string]int{"one.example.com ns/a": 2, "two.example.com ns/a": 5})
	for i := range 1000 {
		one.Send(gw("ns/a"), proxies(i+1))
	}
	hears(t, l, map[string]int{"one.example.com ns/a": 1000, "two.example.com ns/a": 5})
}

// TestNewLeader says that a new leader gets everything, and the old one no more.
func TestNewLeader(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	old, young := newLeader(t), newLeader(t)
	f := newFollower(t, "one")
	f.Send(gw("ns/a"), proxies(1))
	f.Send(gw("ns/b"), proxies(1))
	f.leader.Store(old)
	want := map[string]int{"one.example.com ns/a": 1, "one.example.com ns/b": 1}
	hears(t, old, want)
	f.leader.Store(young)
	hears(t, young, want)
	f.Send(gw("ns/a"), proxies(7))
	want["one.example.com ns/a"] = 7
	hears(t, young, want)
	eventually(t, "the old leader knows that the replica is gone", func() bool { return len(old.heard()) == 0 })

	// A process that has become the leader itself sends nothing.
	f.leader.Store(nil)
	eventually(t, "the other one knows too", func() bool { return len(young.heard()) == 0 })
}

// TestReconnect says that nothing is taken back when a stream breaks and comes back,
// and that what is not said again then is taken back.
func TestReconnect(t *testing.T) {
	t.Parallel()
	l := newLeader(t)
	f := newFollower(t, "one")
	f.leader.Store(l)
	f.Send(gw("ns/a"), proxies(1))
	f.Send(gw("ns/b"), proxies(1))
	hears(t, l, map[string]int{"one.example.com ns/a": 1, "one.example.com ns/b": 1})
	l.CloseClientConnections()
	f.Forget(gw("ns/b"))
	f.Send(gw("ns/c"), proxies(1))
	hears(t, l, map[string]int{"one.example.com ns/a": 1, "one.example.com ns/c": 1})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone > 0 {
		t.Error("a replica that came back was gone")
	}
	for _, line := range l.log {
		if line == "one.example.com ns/a 0" {
			t.Error("what was said twice was taken back in between")
		}
	}
}

// TestReplaced says that the newer of two streams of a replica counts.
func TestReplaced(t *testing.T) {
	t.Parallel()
	l := newLeader(t)
	before, after := newFollower(t, "one"), newFollower(t, "one")
	before.Send(gw("ns/a"), proxies(1))
	before.leader.Store(l)
	hears(t, l, map[string]int{"one.example.com ns/a": 1})
	before.stop()
	after.Send(gw("ns/b"), proxies(2))
	after.leader.Store(l)
	hears(t, l, map[string]int{"one.example.com ns/b": 2})
}

// TestRefused says that a process that is not the leader refuses all, that the sender
// tries again, and that it warns of nothing: one that has just got the Lease leads soon, and one
// that stands back for another installation says so itself.
func TestRefused(t *testing.T) {
	t.Parallel()
	l := newLeader(t)
	l.leads.Store(false)
	f := newFollower(t, "one")
	f.Send(gw("ns/a"), proxies(1))
	f.leader.Store(l)
	eventually(t, "it is tried again", func() bool { return l.tries.Load() > 1 })
	if heard := l.heard(); len(heard) > 0 {
		t.Errorf("it hears %v", heard)
	}
	l.leads.Store(true)
	hears(t, l, map[string]int{"one.example.com ns/a": 1})
	f.stop()
	if text := f.log.String(); text != "" {
		t.Errorf("it logs %s", text)
	}
}

// TestStranger says that a sender that may not speak is refused.
func TestStranger(t *testing.T) {
	t.Parallel()
	l := newLeader(t)
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	answer, err := client.Post(l.URL+replicas.Path, "", strings.NewReader(`{"gateway": "ns/a", "state": {"connected": 1}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Error(answer.Status)
	}
	if heard := l.heard(); len(heard) > 0 {
		t.Errorf("it hears %v", heard)
	}
}

// TestForeignMessages says that a stream which speaks of something else than a Gateway in
// a namespace ends there, with an error that says so. What was said before counts.
func TestForeignMessages(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "ns/", "/a", "ns/a/b"} {
		l := newLeader(t)
		line := func(gateway string) string {
			return fmt.Sprintf("{\"gateway\": %q, \"state\": {\"connected\": 1}}\n", gateway)
		}
		client := l.Client()
		client.Transport.(*http.Transport).TLSClientConfig.ServerName = "one.example.com"
		answer, err := client.Post(l.URL+replicas.Path, "", strings.NewReader(line("ns/a")+line(name)+line("ns/b")))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		l.mu.Lock()
		if d := cmp.Diff([]string{"one.example.com ns/a 1"}, l.log); d != "" {
			t.Errorf("%s, -want +got:\n%s", name, d)
		}
		l.mu.Unlock()
		if want := fmt.Sprintf(`about the Gateway \"%s\"`, name); !l.text.Has(want) {
			t.Errorf("not said: %s, but: %s", want, l.text)
		}
	}
}
