package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// The Gateways of these tests.
var (
	edge = object.Name{Namespace: "default", Name: "edge"}
	ab   = object.Name{Namespace: "a", Name: "b"}
)

// patience bounds every wait of these tests; none waits that long.
const patience = 20 * time.Second

// shortDir is a temporary directory whose sockets have short paths.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func testConfig(dir string) Config {
	return Config{
		Gateway:     edge,
		Dir:         filepath.Join(dir, "edge"),
		Binary:      envoy,
		XDSSocket:   filepath.Join(dir, "xds.sock"),
		Concurrency: 1,
		Log:         slog.New(slog.DiscardHandler),
	}
}

// running is a supervisor whose states are recorded.
type running struct {
	*Supervisor
	t      *testing.T
	cancel context.CancelFunc
	done   chan struct{}
	err    error

	mu     sync.Mutex
	states []State
	wake   chan struct{}
}

func run(t *testing.T, cfg Config) *running {
	t.Helper()
	r := &running{t: t, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	cfg.OnState = func(s State) {
		r.mu.Lock()
		r.states = append(r.states, s)
		r.mu.Unlock()
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
	r.Supervisor = New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		r.err = r.Run(ctx)
		close(r.done)
	}()
	t.Cleanup(r.stop)
	return r
}

// stop ends the supervisor, and its Envoy with it.
func (r *running) stop() {
	r.t.Helper()
	r.cancel()
	select {
	case <-r.done:
	case <-time.After(2 * patience):
		r.t.Fatal("it does not stop")
	}
	if r.err != nil {
		r.t.Error(r.err)
	}
}

// until waits for a state and returns it.
func (r *running) until(what string, ok func(State) bool) State {
	r.t.Helper()
	timeout := time.After(patience)
	for seen := 0; ; {
		r.mu.Lock()
		states := r.states
		r.mu.Unlock()
		for ; seen < len(states); seen++ {
			if ok(states[seen]) {
				return states[seen]
			}
		}
		select {
		case <-r.wake:
		case <-r.done:
			r.t.Fatalf("the supervisor ended before %s: %v", what, r.err)
		case <-timeout:
			r.t.Fatalf("not %s: %+v", what, r.Snapshot())
		}
	}
}

func up(s State) bool   { return s.Phase == PhaseRunning }
func live(s State) bool { return s.Live }

func (r *running) phases() []Phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Phase
	for _, s := range r.states {
		out = append(out, s.Phase)
	}
	return slices.Compact(out)
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// The whole life, with a control plane: starting, running, live, stopped.
func TestSupervisorLife(t *testing.T) {
	dir := shortDir(t)
	cfg := testConfig(dir)
	var lines []Line
	cfg.Output = func(l Line) { lines = append(lines, l) }
	new(adsServer).serve(t, cfg.XDSSocket)
	r := run(t, cfg)
	s := r.until("live", live)
	if s.PID == 0 || s.Adopted || s.Restarts != 0 || s.LastExit != nil || s.Since.IsZero() {
		t.Errorf("%+v", s)
	}
	body, err := r.Admin(t.Context(), http.MethodGet, "/server_info")
	if err != nil || !strings.Contains(string(body), `"id": "default/edge"`) {
		t.Errorf("%v: %.300s", err, body)
	}
	if _, err := r.Admin(t.Context(), http.MethodGet, "/nowhere"); err == nil || !strings.Contains(err.Error(), "404") ||
		!strings.Contains(err.Error(), "default/edge") {
		t.Errorf("an unknown path: %v", err)
	}
	// The number of statistics does not grow with clusters: there are none of
	// the one static cluster.
	stats, err := r.Stats(t.Context(), "")
	if err != nil || stats["server.live"] != 1 || stats["control_plane.connected_state"] != 1 {
		t.Errorf("%v: live %d, connected %d", err, stats["server.live"], stats["control_plane.connected_state"])
	}
	for name := range stats {
		if strings.HasPrefix(name, "cluster.") {
			t.Errorf("statistic %s", name)
		}
	}
	for name, mode := range map[string]os.FileMode{".": 0o700 | os.ModeDir, adminSocket: 0o600 | os.ModeSocket, logFile: 0o600, recordFile: 0o600} {
		info, err := os.Stat(filepath.Join(cfg.Dir, name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v %v", name, err, info.Mode())
		}
	}
	if sid, err := syscall.Getpgid(s.PID); err != nil || sid != s.PID {
		t.Errorf("Envoy is in process group %d: %v", sid, err)
	}
	r.stop()
	want := []Phase{PhaseStarting, PhaseRunning, PhaseDraining, PhaseStopped}
	if got := r.phases(); !slices.Equal(got, want) {
		t.Errorf("phases %v, want %v", got, want)
	}
	for _, name := range []string{adminSocket, recordFile} {
		if _, err := os.Stat(filepath.Join(cfg.Dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	if !slices.ContainsFunc(lines, func(l Line) bool { return l.Logger == "main" && !l.Time.IsZero() }) {
		t.Errorf("no line of Envoy's in %d", len(lines))
	}
	if _, err := r.Admin(t.Context(), http.MethodGet, "/ready"); err == nil {
		t.Error("a stopped Envoy answers")
	}
}

func TestSupervisorRestarts(t *testing.T) {
	dir := shortDir(t)
	cfg := testConfig(dir)
	new(adsServer).serve(t, cfg.XDSSocket)
	r := run(t, cfg)
	first := r.until("live", live)

	kill(t, first.PID)
	again := r.until("live again", func(s State) bool {
		if !s.Next.IsZero() {
			t.Error("it is not started at once")
		}
		return s.Live && s.PID != first.PID
	})
	if again.Restarts != 1 || again.LastExit == nil || again.LastExit.PID != first.PID || again.LastExit.Signal != "killed" {
		t.Errorf("%+v %+v", again, again.LastExit)
	}
	if len(again.LastExit.Lines) == 0 {
		t.Error("no last lines")
	}

	// Soon after, it is not quite as quick.
	kill(t, again.PID)
	wait := r.until("in back-off", func(s State) bool { return !s.Next.IsZero() })
	if wait.Phase != PhaseBackoff || wait.PID != 0 || wait.Live {
		t.Errorf("%+v", wait)
	}
	r.until("live a third time", func(s State) bool { return s.Live && s.Restarts == 2 })
}

// A program that can't run as Envoy is reported, not returned, and the end of
// the supervisor does not wait for the back-off.
func TestSupervisorReportsBadStarts(t *testing.T) {
	dir := shortDir(t)
	fails := filepath.Join(dir, "envoy")
	script(t, fails, "echo some reason >&2; exit 3")
	cfg := testConfig(dir)
	cfg.Binary.Path = fails
	r := run(t, cfg)
	s := r.until("failed twice", func(s State) bool { return s.Restarts == 2 && s.LastExit != nil && !s.Next.IsZero() })
	if s.LastExit.Code != 3 || !slices.Contains(s.LastExit.Lines, "some reason") || s.LastExit.String() != "exit code 3" {
		t.Errorf("%+v", s.LastExit)
	}
	r.stop()

	cfg.Binary.Path = filepath.Join(dir, "none")
	r = run(t, cfg)
	s = r.until("failed", func(s State) bool { return s.LastExit != nil })
	if s.LastExit.Err == nil || !strings.Contains(s.LastExit.String(), "none") {
		t.Errorf("%+v", s.LastExit)
	}
	// Mended, it starts without anybody's doing.
	if err := os.Symlink(envoy.Path, cfg.Binary.Path); err != nil {
		t.Fatal(err)
	}
	r.until("running", up)
}

func TestSupervisorSetUpErrors(t *testing.T) {
	dir := shortDir(t)
	cfg := testConfig(dir)
	run(t, cfg).until("running", up)
	if err := New(cfg).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "another Gatehouse") {
		t.Errorf("two supervisors in a directory: %v", err)
	}
	link := cfg
	link.Dir = filepath.Join(dir, "link")
	if err := os.Symlink(cfg.Dir, link.Dir); err != nil {
		t.Fatal(err)
	}
	if err := New(link).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a symbolic link: %v", err)
	}
}

// A lost control plane is asked for about once a second, however long it is gone.
func TestReconnectIsBounded(t *testing.T) {
	cfg := testConfig(shortDir(t))
	ads := &adsServer{refuse: 8}
	ads.serve(t, cfg.XDSSocket)
	r := run(t, cfg)
	r.until("live", live)
	streams := ads.streams()
	for i := 1; i < len(streams); i++ {
		if gap := streams[i].Sub(streams[i-1]); gap > 2*time.Second {
			t.Errorf("try %d after %s", i+1, gap)
		}
	}
	if len(streams) != ads.refuse+1 {
		t.Errorf("%d streams", len(streams))
	}
}

// freeAddr is a loopback address that nobody listens on.
func freeAddr(t *testing.T) *net.TCPAddr {
	t.Helper()
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port.OfTest(t)}
}
