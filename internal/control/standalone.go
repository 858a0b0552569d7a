package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// StandaloneOptions configure `gatehouse run`.
type StandaloneOptions struct {
	Paths        []string // directories, files, or "-"
	Stdin        io.Reader
	Experimental bool     // read the experimental channel's kinds and fields
	Bind         []string // IP addresses for Gateways that ask for none
	PortOffset   int
	Client       ClientOptions
	Envoy        proxy.Binary
	Concurrency  int    // Envoy's worker threads; 0 is one per CPU
	StateDir     string // private to one run at a time; survives it
	DrainTimeout time.Duration
	Log          *slog.Logger
	// OnCommit is called after each commit, from one goroutine; it must be quick.
	OnCommit func()
	// OnStates gets the objects whose state became bad, or good again, in a
	// commit, from the goroutine of OnCommit; nil if nobody wants to know.
	OnStates func([]StateChange)
	// Output gets the lines that the Envoys print.
	Output func(gateway string, line proxy.Line)
}

// Standalone serves files with Envoy processes on this machine.
type Standalone struct {
	opts     StandaloneOptions
	log      *slog.Logger
	pipeline *Pipeline
	server   *xds.Server
	fleet    *fleet
	times    *transitions
	events   eventQueue

	usualGC     int
	serving     context.Context
	stopServing context.CancelFunc

	troubled troubled      // objects that are in a bad state
	gone     []object.Name // Gateways whose fleet went, to be unheard in the next transaction

	mu     sync.Mutex
	loaded bool
	states map[string]xds.State
}

// NewStandalone prepares a run. The caller holds the state directory's lock.
func NewStandalone(opts StandaloneOptions) (*Standalone, error) {
	if opts.OnCommit == nil {
		opts.OnCommit = func() {}
	}
	options, err := standalonePipeline(opts.Bind, opts.PortOffset, opts.Client)
	if err != nil {
		return nil, err
	}
	options.Topology.Experimental = opts.Experimental
	s := &Standalone{
		opts:     opts,
		log:      opts.Log,
		pipeline: NewPipeline(options),
		times:    newTransitions(),
		events:   newEventQueue(),
		states:   map[string]xds.State{},
		troubled: troubled{},
	}
	// The xDS server and the Envoys outlive Run's context: draining needs both.
	s.serving, s.stopServing = context.WithCancel(context.Background())
	s.server = xds.New(xds.Options{
		Log: s.log,
		OnState: func(gateway string, state xds.State) {
			s.events.tell(s.serving, feedback{gateway: gateway, state: state})
		},
	})
	s.fleet = newFleet(s.serving, fleetOptions{
		dir: filepath.Join(opts.StateDir, "g"), server: s.server, binary: opts.Envoy,
		concurrency: opts.Concurrency, drain: opts.DrainTimeout, log: s.log, output: opts.Output,
	})
	return s, nil
}

// Run serves until ctx ends, then drains and stops the Envoys.
func (s *Standalone) Run(ctx context.Context) error {
	files, err := file.New(file.Options{
		Paths: s.opts.Paths, Stdin: s.opts.Stdin, Experimental: s.opts.Experimental, Log: s.log,
	})
	if err != nil {
		return err
	}
	defer s.stopServing()
	// The first load makes far more garbage than it keeps, and time counts then.
	s.usualGC = debug.SetGCPercent(loadingGC)
	defer s.loadingDone()
	group, watching := errgroup.WithContext(ctx)
	group.Go(func() error {
		return files.Run(watching, func(b source.Batch) { s.events.emit(watching, b) })
	})
	group.Go(func() error { return s.events.loop(watching, s.commit) })
	err = group.Wait()
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil
	}
	stopped := make(chan struct{})
	go func() { // the Envoys' last words must not find a full channel
		for {
			select {
			case <-s.events.said:
			case <-stopped:
				return
			}
		}
	}()
	s.fleet.stopAll()
	s.stopServing()
	s.server.Stop()
	close(stopped)
	return err
}

// loadingGC is GOGC until everything has been read once.
const loadingGC = 400

// loadingDone takes the collector back to what it was set to.
func (s *Standalone) loadingDone() { debug.SetGCPercent(s.usualGC) }

func (s *Standalone) commit(batches []source.Batch, said []feedback) {
	c := s.pipeline.engine.Update(func(tx *flow.Tx) {
		s.pipeline.clock.Set(tx, struct{}{}, time.Now().Truncate(time.Minute))
		s.pipeline.apply(tx, batches)
		for _, f := range said {
			s.pipeline.hear(tx, f)
		}
		for _, gateway := range s.gone {
			s.pipeline.unhear(tx, gateway)
		}
		s.gone = nil
	})
	logFailures(s.log, c)
	s.times.note(s.pipeline, c, time.Now())
	s.server.Apply(s.pipeline.Updates(c))

	s.mu.Lock()
	for _, f := range said {
		s.states[f.gateway] = f.state
	}
	first := len(batches) > 0 && !s.loaded
	s.loaded = s.loaded || len(batches) > 0
	s.mu.Unlock()

	for _, ch := range flow.Changes(c, s.pipeline.fleets) {
		switch {
		case ch.Has && !ch.Had:
			s.fleet.start(ch.Key, s.pipeline.settingsOf(ch.Key))
		case ch.Had && !ch.Has:
			s.fleet.stop(ch.Key)
			s.forget(ch.Key)
			s.gone = append(s.gone, ch.Key)
		}
	}
	if first {
		s.loadingDone()
		s.fleet.stopLeftovers()
	}
	logProblems(s.log, s.pipeline, c)
	if changes := s.troubled.note(s.pipeline, c); len(changes) > 0 && s.opts.OnStates != nil {
		s.opts.OnStates(changes)
	}
	s.opts.OnCommit()
}

func (s *Standalone) forget(gateway object.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, gateway.String())
}

// Waiting returns the paths that the user named, can't be read, and of which
// nothing is in force: a directory that is mounted late, say.
func (s *Standalone) Waiting() []string {
	var paths []string
	s.pipeline.engine.View(func(c *flow.Ctx) {
		for _, list := range flow.All(c, s.pipeline.problems) {
			for _, p := range list {
				if p.Reason == source.Unread && !p.Stale && s.named(p.File) {
					paths = append(paths, p.File)
				}
			}
		}
	})
	slices.Sort(paths)
	return paths
}

func (s *Standalone) named(file string) bool {
	return slices.ContainsFunc(s.opts.Paths, func(path string) bool { return filepath.Clean(path) == filepath.Clean(file) })
}

// Hurry ends the Envoys that are draining, and those that shall end later, now
// instead of waiting for their clients. Whoever calls it wants Run to return.
func (s *Standalone) Hurry() { s.fleet.hurry() }

// Ready reports whether the first configuration is in force: every Gateway's
// proxy has acknowledged it, or refused a part of it, which is that part's
// problem alone.
func (s *Standalone) Ready() (bool, string) {
	s.mu.Lock()
	loaded := s.loaded
	s.mu.Unlock()
	if !loaded {
		return false, "the files have not been read yet"
	}
	ready, why := true, ""
	s.pipeline.engine.View(func(c *flow.Ctx) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for gateway := range flow.All(c, s.pipeline.fleets) {
			if !s.states[gateway.String()].Synced {
				ready, why = false, "the proxy of Gateway "+gateway.String()+" has no configuration yet"
			}
		}
	})
	return ready, why
}
