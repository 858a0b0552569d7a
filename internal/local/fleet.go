package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/ratelimit"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Fleet runs one Envoy process for each Gateway of a pipeline that has proxies.
type Fleet struct {
	Options
	ctx  context.Context // of the service of xDS, which a draining Envoy needs
	stop context.CancelFunc

	mu      sync.Mutex
	members map[object.Name]*member
	leaving map[string]chan struct{} // directory → closed when its last process is gone

	hurried context.Context // ends when drains shall not wait for clients any more
	// Hurry ends the Envoys that are draining, and those that shall end later, at once
	// instead of waiting for their clients.
	Hurry context.CancelFunc
}

// Options configure a Fleet.
type Options struct {
	Pipeline *pipeline.Pipeline
	Server   *xds.Server
	// StateDir is private to one process at a time.
	StateDir     string
	Envoy        proxy.Binary
	Concurrency  int // Envoy's worker threads; 0 is one per CPU
	DrainTimeout time.Duration
	Log          *slog.Logger
	// Output, if not nil, gets the lines that the Envoys print.
	Output func(gateway object.Name, line proxy.Line)
}

// xdsSocket is the name of the socket in a Gateway's directory.
const xdsSocket = "xds.sock"

// member is one Gateway's Envoy with the socket that it gets its
// configuration from. The socket is the proxy's identity: who can reach it is
// that Gateway, whatever it says of itself.
type member struct {
	supervisor *proxy.Supervisor
	socket     atomic.Pointer[proxy.Socket] // while it serves
	counting   *ratelimit.Server            // its limits, for as long as it has an Envoy
	cancel     context.CancelFunc
	dir        string
	done       chan struct{}
}

// restoreSocket lets an Envoy that is about to start find its control plane,
// whatever has happened to the directory.
func (m *member) restoreSocket() error {
	if socket := m.socket.Load(); socket != nil {
		return socket.Restore()
	}
	return nil
}

// changed makes an Envoy that stands still one that is not connected.
func (m *member) changed(s proxy.State) {
	if s.Phase != proxy.PhaseStalled {
		return
	}
	if socket := m.socket.Load(); socket != nil {
		socket.Cut()
	}
}

// New prepares a Fleet. It ends with StopAll.
func New(o Options) *Fleet {
	f := &Fleet{Options: o, members: map[object.Name]*member{}, leaving: map[string]chan struct{}{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.hurried, f.Hurry = context.WithCancel(f.ctx) //nolint:gosec // it ends with f.ctx
	return f
}

// dir holds the directories of Gateways.
func (f *Fleet) dir() string { return filepath.Join(f.StateDir, "g") }

// Committed starts and ends Envoys as a commit says.
func (f *Fleet) Committed(c *flow.Commit) {
	for _, ch := range flow.Changes(c, f.Pipeline.Fleets) {
		switch {
		case ch.Has && !ch.Had:
			f.start(ch.Key, f.Pipeline.SettingsOf(ch.Key))
		case ch.Had && !ch.Has:
			f.end(ch.Key)
		}
	}
}

// Published has nothing to do: Envoys are told over xDS.
func (f *Fleet) Published() {}

// directory returns a Gateway's private directory. Its name is a hash: socket
// paths are limited to about a hundred bytes and Gateways' names are not.
func (f *Fleet) directory(gateway object.Name) string {
	sum := sha256.Sum256([]byte(gateway.String()))
	return filepath.Join(f.dir(), hex.EncodeToString(sum[:6]))
}

// start runs a Gateway's Envoy by settings, as they are now: later ones count when it
// starts the next time.
func (f *Fleet) start(gateway object.Name, settings *v1alpha1.Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members[gateway] != nil {
		return
	}
	dir := f.directory(gateway)
	counts := ratelimit.NewMemory()
	m := &member{dir: dir, counting: ratelimit.New(ratelimit.Options{Gateway: gateway, Store: counts, Log: f.Log}), done: make(chan struct{})}
	config := f.config(gateway, dir, settings)
	config.Prepare = m.restoreSocket
	config.OnState = m.changed
	m.supervisor = proxy.New(config)
	f.members[gateway] = m
	predecessor := f.leaving[dir]
	ctx, cancel := context.WithCancel(f.ctx)
	m.cancel = cancel
	go func() {
		defer close(m.done)
		if predecessor != nil {
			<-predecessor
		}
		defer context.AfterFunc(f.hurried, m.supervisor.Hurry)()
		f.run(ctx, gateway, m)
		_ = counts.Close() // in memory
		f.left(dir, m.done)
	}()
}

// left forgets a directory whose last process is gone, unless another one has
// come and gone, or is on its way out, since.
func (f *Fleet) left(dir string, done chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leaving[dir] == done {
		delete(f.leaving, dir)
	}
}

func (f *Fleet) config(gateway object.Name, dir string, settings *v1alpha1.Settings) proxy.Config {
	config := proxy.Config{
		Gateway: gateway, Dir: dir, Binary: f.Envoy,
		XDSSocket: filepath.Join(dir, xdsSocket), Concurrency: f.Concurrency,
		DrainTimeout: f.DrainTimeout, Log: f.Log,
		Output: func(line proxy.Line) {
			if f.Output != nil {
				f.Output(gateway, line)
			}
		},
	}
	if e := settings.Envoy; e != nil {
		if e.Concurrency != nil {
			config.Concurrency = int(*e.Concurrency)
		}
		if e.LogLevel != nil {
			config.LogLevel = string(*e.LogLevel)
		}
		if e.Bootstrap != nil {
			config.Additions = e.Bootstrap.Raw
		}
	}
	if m := settings.Metrics; m != nil && m.Backends != nil {
		config.BackendStats = *m.Backends
	}
	if d := settings.Drain; d != nil && d.Timeout != nil {
		// A timeout of 0 would be the default one.
		timeout, _ := time.ParseDuration(string(*d.Timeout)) // it has been checked
		config.DrainTimeout = max(timeout, time.Millisecond)
	}
	return config
}

func (f *Fleet) run(ctx context.Context, gateway object.Name, m *member) {
	const retry = 5 * time.Second
	for {
		err := f.serve(ctx, gateway, m)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				f.Log.Error("the Envoy of a Gateway did not stop cleanly", "gateway", gateway.String(), "error", err)
			}
			if err == nil {
				_ = os.RemoveAll(m.dir) // nothing runs that the next run would have to find
			}
			return
		}
		f.Log.Error("the Envoy of a Gateway can't run; trying again", "gateway", gateway.String(), "error", err, "in", retry)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retry):
		}
	}
}

// serve runs a Gateway's xDS socket and Envoy until ctx ends.
func (f *Fleet) serve(ctx context.Context, gateway object.Name, m *member) error {
	socket, err := proxy.ListenSocket(filepath.Join(m.dir, xdsSocket), f.Log.With("gateway", gateway.String()))
	if err != nil {
		return err
	}
	m.socket.Store(socket)
	defer m.socket.Store(nil)
	limits, err := proxy.ListenSocket(filepath.Join(m.dir, proxy.LimitsSocket), f.Log.With("gateway", gateway.String()))
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	served, stop := context.WithCancel(f.ctx) // outlives ctx: a draining Envoy keeps its configuration
	var group errgroup.Group
	group.Go(func() error { return ignoreCanceled(f.Server.Serve(served, socket, gateway)) })
	group.Go(func() error { return m.counting.Serve(served, limits) })
	err = m.supervisor.Run(ctx)
	stop()
	return errors.Join(err, group.Wait())
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// end drains a Gateway's Envoy in the background.
func (f *Fleet) end(gateway object.Name) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[gateway]
	if m == nil {
		return
	}
	delete(f.members, gateway)
	f.leaving[m.dir] = m.done
	m.cancel()
}

// StopAll drains every Envoy, all at the same time, and waits for them.
func (f *Fleet) StopAll() {
	f.mu.Lock()
	var waits []chan struct{}
	for gateway, m := range f.members {
		delete(f.members, gateway)
		m.cancel()
		waits = append(waits, m.done)
	}
	for _, done := range f.leaving {
		waits = append(waits, done)
	}
	f.mu.Unlock()
	for _, done := range waits {
		<-done
	}
	f.stop()
}

// StopLeftovers stops Envoys that an earlier run left behind, for Gateways that
// no longer exist.
func (f *Fleet) StopLeftovers() {
	entries, err := os.ReadDir(f.dir())
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	used := map[string]bool{}
	for _, m := range f.members {
		used[m.dir] = true
	}
	for _, e := range entries {
		dir := filepath.Join(f.dir(), e.Name())
		if used[dir] || f.leaving[dir] != nil {
			continue
		}
		done := make(chan struct{})
		f.leaving[dir] = done
		go func() {
			defer close(done)
			defer f.left(dir, done)
			if err := proxy.StopLeftover(f.hurried, f.config(object.Name{Namespace: "removed", Name: e.Name()}, dir, &v1alpha1.Settings{})); err != nil {
				f.Log.Warn("an Envoy that an earlier run left behind can't be stopped", "directory", dir, "error", err)
				return
			}
			_ = os.RemoveAll(dir)
		}()
	}
}

// Leaving returns how many Envoys of Gateways that are gone are still draining.
func (f *Fleet) Leaving() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.leaving)
}

// Snapshot returns the state of every Gateway's Envoy.
func (f *Fleet) Snapshot() map[object.Name]proxy.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[object.Name]proxy.State, len(f.members))
	for gateway, m := range f.members {
		out[gateway] = m.supervisor.Snapshot()
	}
	return out
}

// Describe implements prometheus.Collector. Gateways come and go, and their metrics with them.
func (f *Fleet) Describe(chan<- *prometheus.Desc) {}

// Collect returns the metrics of what counts requests.
func (f *Fleet) Collect(ch chan<- prometheus.Metric) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		m.counting.Collect(ch)
	}
}
