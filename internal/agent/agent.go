package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/lastgood"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

// Config describes the proxy of a Gateway in its pod.
type Config struct {
	// Gateway is whose proxy it is.
	Gateway object.Name
	// Dial opens a connection to the control plane's xDS server.
	Dial func(context.Context) (net.Conn, error)
	// DialLimits opens a connection to what counts requests for all proxies of the Gateway; nil
	// where nothing does.
	DialLimits func(context.Context) (net.Conn, error)
	// StateDir is where everything that is written lies; the proxy gets a private
	// directory in it. An absolute path.
	StateDir string
	// Binary is the Envoy to run.
	Binary proxy.Binary
	// Concurrency is the number of Envoy's worker threads.
	Concurrency int
	// LogLevel is Envoy's.
	LogLevel string
	// BackendStats adds metrics of every backend.
	BackendStats bool
	// Additions are merged into Envoy's bootstrap, see proxy.BootstrapOptions.
	Additions []byte
	// Health is where health and metrics are served. It is closed in the end.
	Health net.Listener
	// DrainDelay is how long it goes on serving unchanged after the signal to stop: load
	// balancers must see first that it is unready.
	DrainDelay time.Duration
	// DrainTimeout bounds the wait for clients that comes after the delay.
	DrainTimeout time.Duration
	// Collectors are served with the agent's own metrics.
	Collectors []prometheus.Collector
	Log        *slog.Logger
	// Output gets each line of Envoy's log.
	Output func(proxy.Line)
	// Stdout gets what Envoy prints to its standard output: access logs.
	Stdout *os.File
}

// Agent runs one proxy.
type Agent struct {
	cfg        Config
	log        *slog.Logger
	relay      *relay
	limits     *relay // nil without DialLimits
	kept       *lastgood.Keeper
	supervisor *proxy.Supervisor
	socket     atomic.Pointer[proxy.Socket]

	draining  atomic.Bool
	wasReady  atomic.Bool
	hurryOnce sync.Once
	hurried   chan struct{}
}

// New prepares an agent; nothing happens before Run.
func New(c Config) *Agent {
	a := &Agent{cfg: c, log: c.Log.With("gateway", c.Gateway.String()), hurried: make(chan struct{})}
	a.kept = lastgood.New(lastgood.Options{
		Gateway: c.Gateway.String(), Envoy: c.Binary.Version, File: filepath.Join(a.dir(), "last-good"), Log: a.log,
	})
	a.relay = newRelay("the control plane", c.Dial, a.log)
	a.relay.kept = a.kept
	if c.DialLimits != nil {
		a.limits = newRelay("what counts requests", c.DialLimits, a.log)
		a.limits.prompt = true
	}
	a.supervisor = proxy.New(proxy.Config{
		Gateway: c.Gateway, Dir: a.dir(), Binary: c.Binary, XDSSocket: a.xdsSocket(),
		Concurrency: c.Concurrency, DrainTimeout: max(c.DrainTimeout, time.Nanosecond), LogLevel: c.LogLevel,
		BackendStats: c.BackendStats, Additions: c.Additions, Stdout: c.Stdout, Prepare: a.restoreSocket,
		Reachable: func() bool { return a.relay.state().connected },
		Log:       c.Log, Output: c.Output, OnState: a.changed,
	})
	return a
}

// The state directory itself may be anybody's, as a volume's is.
func (a *Agent) dir() string       { return filepath.Join(a.cfg.StateDir, "envoy") }
func (a *Agent) xdsSocket() string { return filepath.Join(a.dir(), "xds.sock") }

// Run runs the proxy until ctx ends; then it is drained and stopped. Errors are
// those of the set-up, and an Envoy that can't be stopped. Run is called once.
func (a *Agent) Run(ctx context.Context) error {
	// The control plane and the probes are there until Envoy has gone.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	defer all.Wait()
	defer end()

	server := a.healthServer()
	all.Go(func() {
		if err := server.Serve(a.cfg.Health); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error("health and metrics are served no more", "error", err)
		}
	})
	defer server.Close()

	socket, err := proxy.ListenSocket(a.xdsSocket(), a.log)
	if err != nil {
		return fmt.Errorf("proxy of Gateway %s: %w", a.cfg.Gateway, err)
	}
	a.socket.Store(socket)
	a.kept.Load()
	all.Go(func() { a.kept.Run(life) })
	all.Go(func() { a.relay.serve(life, socket) })
	if a.limits != nil {
		counting, err := proxy.ListenSocket(filepath.Join(a.dir(), proxy.LimitsSocket), a.log)
		if err != nil {
			return fmt.Errorf("proxy of Gateway %s: %w", a.cfg.Gateway, err)
		}
		all.Go(func() { a.limits.serve(life, counting) })
	}

	serving, stop := context.WithCancel(life)
	defer stop()
	all.Go(func() {
		defer stop()
		a.untilUnnoticed(ctx, life)
	})
	return a.supervisor.Run(serving)
}

// untilUnnoticed returns when Envoy may begin to drain: some time after ctx ends.
func (a *Agent) untilUnnoticed(ctx, life context.Context) {
	select {
	case <-life.Done():
		return
	case <-ctx.Done():
	}
	a.draining.Store(true)
	if !a.wasReady.Load() { // so no client was sent here
		return
	}
	a.log.Info("draining: not ready any more, and serving on until that is known",
		"delay", a.cfg.DrainDelay.String(), "timeout", a.cfg.DrainTimeout.String())
	delay := time.NewTimer(a.cfg.DrainDelay)
	defer delay.Stop()
	select {
	case <-life.Done():
	case <-a.hurried:
	case <-delay.C:
	}
}

// Hurry ends a drain at once, the one that is under way or the next. It may be
// called at any time.
func (a *Agent) Hurry() {
	a.hurryOnce.Do(func() {
		close(a.hurried)
		a.supervisor.Hurry()
	})
}

// restoreSocket lets an Envoy that is about to start find its control plane.
func (a *Agent) restoreSocket() error {
	if socket := a.socket.Load(); socket != nil {
		return socket.Restore()
	}
	return nil
}

func (a *Agent) changed(s proxy.State) {
	a.kept.Tell(lastgood.Envoy{PID: s.PID, Live: s.Live})
	if s.Phase == proxy.PhaseStalled {
		// The control plane must not count this proxy any more.
		a.socket.Load().Cut()
	}
	if s.Live && !a.wasReady.Swap(true) {
		a.log.Info("ready: the first configuration is in force")
	}
}
