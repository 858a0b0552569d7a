package remote_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configserver"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote"
)

// longest bounds all waiting.
const longest = 60 * time.Second

// cutting is a listener whose connections can be cut.
type cutting struct {
	net.Listener
	mu   sync.Mutex
	open []net.Conn
}

func (l *cutting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.open = append(l.open, c)
		l.mu.Unlock()
	}
	return c, err
}

func (l *cutting) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

// serving is a config server that can be replaced by another one at the same address.
type serving struct {
	t       *testing.T
	address string
	server  *configserver.Server
	lis     *cutting
	stop    func()
}

// begin serves what there is.
func (s *serving) begin(all source.Batch) {
	s.t.Helper()
	if s.address == "" {
		s.address = "127.0.0.1:0"
	}
	lis, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address, s.lis = lis.Addr().String(), &cutting{Listener: lis}
	s.server = configserver.New(configserver.Options{
		Access: configserver.Access{Anybody: true, Rights: configserver.Rights{Secrets: true}}, Log: slog.New(slog.DiscardHandler),
	})
	s.server.Apply(all)
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.server.Serve(ctx, s.lis, insecure.NewCredentials()) }()
	s.stop = func() {
		s.lis.cut()
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	}
}

// client is a process that subscribes.
type client struct {
	t    *testing.T
	stop func()

	mu      sync.Mutex
	objects map[object.Key]source.Object
	bad     map[string][]source.Problem
	first   bool
}

func subscribe(t *testing.T, address, stateDir string) *client {
	t.Helper()
	s, err := remote.New(remote.Options{Address: address, TLS: remote.TLS{Plaintext: true}, StateDir: stateDir})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, objects: map[object.Key]source.Object{}, bad: map[string][]source.Problem{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, c.take) }()
	c.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return c
}

func (c *client) take(b source.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.first = true
	for _, key := range b.Deleted {
		if key.Name.Name == pinned {
			c.t.Errorf("%s was taken away", key)
		}
		delete(c.objects, key)
	}
	for _, o := range b.Set {
		c.objects[source.KeyOf(o)] = o
	}
	for of, list := range b.Problems {
		if c.bad[of] = list; len(list) == 0 {
			delete(c.bad, of)
		}
	}
}

// has returns what is in force.
func (c *client) has() map[object.Key]source.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.objects)
}

// same reports whether objects are these versions, of the same age.
func same(has, want map[object.Key]source.Object) bool {
	return maps.EqualFunc(has, want, func(a, b source.Object) bool {
		return a.GetLabels()["change"] == b.GetLabels()["change"] && a.GetGeneration() == b.GetGeneration() &&
			a.GetCreationTimestamp().Time.Equal(b.GetCreationTimestamp().Time)
	})
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(longest); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", longest, what)
		}
	}
}

// pinned is the name of objects that are changed and never deleted.
const pinned = "pinned"

func made(n int, name string, age time.Duration, change int) source.Object {
	meta := metav1.ObjectMeta{
		Namespace: "default", Name: name, Generation: int64(change + 1), CreationTimestamp: metav1.Time{Time: time.Unix(1e9, 0).Add(age)},
		Labels: map[string]string{"change": fmt.Sprint(change)},
	}
	switch n % 3 {
	case 0:
		o := &gwv1.HTTPRoute{TypeMeta: metav1.TypeMeta{APIVersion: "gateway.networking.k8s.io/v1", Kind: "HTTPRoute"}, ObjectMeta: meta}
		o.Spec.Hostnames = []gwv1.Hostname{gwv1.Hostname(fmt.Sprintf("h%d.test", change))}
		return o
	case 1:
		return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: map[string]string{"a": fmt.Sprint(change)}}
	}
	return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"a": fmt.Append(nil, change)}}
}

// TestCuts protects what clients serve from edits and losses in any order: after many of them, with
// connections cut, servers replaced and clients killed, it is what a client has that starts then. What is
// never deleted never goes, and what a client has kept is there at once.
func TestCuts(t *testing.T) {
	edits := 10_000
	if testing.Short() {
		edits = 1000
	}
	r := rand.New(rand.NewPCG(1, uint64(edits)))
	all := map[object.Key]source.Object{}
	set := func(b *source.Batch, o source.Object) {
		b.Set = append(b.Set, o)
		all[source.KeyOf(o)] = o
	}
	var start source.Batch
	for n := range 3 {
		set(&start, made(n, pinned, 0, 0))
	}
	s := &serving{t: t}
	s.begin(start)
	state := t.TempDir()
	c := subscribe(t, s.address, state)
	cuts, replaced, killed := 0, 0, 0
	for done := 0; done < edits; {
		var b source.Batch
		for range 1 + r.IntN(20) {
			n := r.IntN(300)
			name := fmt.Sprintf("o%d", n)
			key := source.KeyOf(made(n, name, 0, 0))
			switch _, there := all[key]; {
			case r.IntN(50) == 0:
				set(&b, made(n, pinned, 0, done))
			case there && r.IntN(3) == 0:
				delete(all, key)
				b.Deleted = append(b.Deleted, key)
				b.Set = without(b.Set, key)
			default:
				set(&b, made(n, name, time.Duration(r.Int64N(1e12)), done))
				b.Deleted = withoutKey(b.Deleted, key)
			}
			done++
		}
		s.server.Apply(b)
		switch chance := r.IntN(1000); {
		case chance < 40:
			s.lis.cut()
			cuts++
		case chance < 50:
			s.stop()
			s.begin(batchOf(all))
			replaced++
		case chance < 60:
			c.stop()
			knew := len(c.has()) > 0
			c = subscribe(t, s.address, state)
			if knew {
				until(t, "what is kept is there", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.first })
				if _, ok := c.has()[source.KeyOf(made(0, pinned, 0, 0))]; !ok {
					t.Fatal("what was kept is not there at the start")
				}
			}
			killed++
		case chance < 100: // the client gets to see this one
			until(t, "the client has seen a state", func() bool { return len(c.has()) == len(all) })
		}
	}
	t.Logf("%d cuts, %d other servers, %d other clients", cuts, replaced, killed)
	until(t, "the client has what the server has", func() bool { return same(c.has(), all) })
	fresh := subscribe(t, s.address, "")
	until(t, "a new client has it too", func() bool { return same(fresh.has(), all) })
	want := fresh.has()
	if diff := cmp.Diff(want, c.has()); diff != "" {
		t.Errorf("a client that starts now has something else:\n%s", diff)
	}
	if len(c.bad) > 0 {
		t.Errorf("problems are left: %v", c.bad)
	}
	fresh.stop()
	c.stop()

	// A client that starts without a server has all of it.
	s.stop()
	last := subscribe(t, s.address, state)
	until(t, "all is kept", func() bool { return len(last.has()) > 0 })
	if diff := cmp.Diff(want, last.has()); diff != "" {
		t.Errorf("what is kept is something else:\n%s", diff)
	}
	last.stop()
}

func batchOf(all map[object.Key]source.Object) (b source.Batch) {
	for o := range maps.Values(all) {
		b.Set = append(b.Set, o)
	}
	return b
}

func without(list []source.Object, key object.Key) (out []source.Object) {
	for _, o := range list {
		if source.KeyOf(o) != key {
			out = append(out, o)
		}
	}
	return out
}

func withoutKey(list []object.Key, key object.Key) (out []object.Key) {
	for _, k := range list {
		if k != key {
			out = append(out, k)
		}
	}
	return out
}
