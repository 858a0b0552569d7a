package standalone

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/extension"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/keyset/fetch"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/local"
	"github.com/gatehouse-dev/gatehouse/internal/loop"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file"
	"github.com/gatehouse-dev/gatehouse/internal/source/ingress"
	"github.com/gatehouse-dev/gatehouse/internal/source/members"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Options configure `gatehouse run`.
type Options struct {
	Paths []string // directories, files, or "-"
	Stdin io.Reader
	// Remotes are config servers; files win over them, and the first over the others.
	Remotes []remote.Options
	// Clusters are member clusters, whose exported Services are backends beside what the others have.
	Clusters     []members.Cluster
	Experimental bool     // read the experimental channel's kinds and fields
	Bind         []string // IP addresses for Gateways that ask for none
	PortOffset   int
	Client       ClientOptions
	// UnsafeParameters lets GatewayParameters name files of this host, which Envoy
	// writes, and add to what Envoy starts with.
	UnsafeParameters bool
	// AccessLog is the file for a line for each request where parameters say nothing of it; empty
	// for none.
	AccessLog string
	// Ingresses, if not nil, are served too.
	Ingresses *ingress.Options
	// Extensions are servers that change what proxies are sent.
	Extensions []extension.Options
	// Lenient starts although files have mistakes and nothing is kept of an earlier run.
	Lenient bool

	Envoy        proxy.Binary
	Concurrency  int    // Envoy's worker threads; 0 is one per CPU
	StateDir     string // private to one run at a time; survives it
	DrainTimeout time.Duration
	Log          *slog.Logger
	// OnCommit is called after each commit, from one goroutine; it must be quick.
	OnCommit func()
	// OnStates gets the objects whose state became bad, or good again, in a
	// commit, from the goroutine of OnCommit; nil if nobody wants to know.
	OnStates func([]view.StateChange)
	// Output gets the lines that the Envoys print.
	Output func(gateway object.Name, line proxy.Line)
}

// Standalone serves files with Envoy processes on this machine.
type Standalone struct {
	opts     Options
	kinds    *kind.Table
	pipeline *pipeline.Pipeline
	server   *xds.Server
	fleet    *local.Fleet
	loop     *loop.Loop
	keySets  *fetch.Fetcher
	inputs   []input
	remotes  []*remote.Source
	// reporters are those of them, by their index among the inputs.
	reporters loop.Reporters
	members   *members.Source  // nil for none
	stage     *extension.Stage // nil without extensions
	times     *view.Transitions
	troubled  *view.Troubled
	changes   []view.StateChange

	usualGC     int
	release     *time.Timer // gives memory back that the first load has used; nil before its end
	serving     context.Context
	stopServing context.CancelFunc

	cleared bool // Envoys that earlier runs left behind are stopped

	mu     sync.Mutex
	loaded bool
	synced map[object.Name]bool // Gateways whose proxy has a whole configuration
}

// input runs one of the sources.
type input func(context.Context, func(source.Batch)) error

// New prepares a run. The caller holds the state directory's lock.
func New(opts Options) (*Standalone, error) {
	if opts.OnCommit == nil {
		opts.OnCommit = func() {}
	}
	options, err := pipelineOptions(opts.Bind, opts.PortOffset, opts.Client)
	if err != nil {
		return nil, err
	}
	options.Topology.Experimental = opts.Experimental
	options.Topology.UnsafeParameters = opts.UnsafeParameters
	if opts.AccessLog != "" {
		options.Topology.Settings = &v1alpha1.Settings{AccessLog: []v1alpha1.AccessLog{{Path: &opts.AccessLog}}}
	}
	kinds, derive := kind.All, (func(source.Batch) source.Batch)(nil)
	if opts.Ingresses != nil {
		ingresses, err := ingress.New(*opts.Ingresses)
		if err != nil {
			return nil, err
		}
		kinds, derive = kind.WithIngresses, ingresses.Take
	}
	options.Kinds = kinds
	host, _ := os.Hostname()
	options.Topology.Instance = host + " " + opts.StateDir
	s := &Standalone{
		opts: opts, kinds: kinds, pipeline: pipeline.New(options),
		reporters: loop.Reporters{}, times: view.NewTransitions(), troubled: view.NewTroubled(), synced: map[object.Name]bool{},
	}
	names, err := s.open()
	if err != nil {
		return nil, err
	}
	if derive != nil {
		names = append(names, "Ingresses")
	}
	// The service of xDS outlives Run's context: draining needs it.
	s.serving, s.stopServing = context.WithCancel(context.Background())
	s.server = xds.New(xds.Options{
		Log: opts.Log,
		OnState: func(gateway object.Name, state xds.State) {
			s.loop.Tell(s.serving, loop.Feedback{Gateway: gateway, State: state})
		},
	})
	s.fleet = local.New(local.Options{
		Pipeline: s.pipeline, Server: s.server, StateDir: opts.StateDir, Envoy: opts.Envoy,
		Concurrency: opts.Concurrency, DrainTimeout: opts.DrainTimeout, Log: opts.Log, Output: opts.Output,
	})
	s.keySets = fetch.New(fetch.Options{
		Log: opts.Log, StateDir: opts.StateDir,
		Answer: func(ctx context.Context, k keyset.Key, a keyset.Answer) { s.loop.Learn(ctx, k, a) },
	})
	driven := loop.Options{
		Pipeline: s.pipeline, Server: s.server, Log: opts.Log, Sources: names, Derive: derive, KeySets: s.keySets,
		Observers: []loop.Observer{s, s.fleet, &loop.Reports{Loop: func() *loop.Loop { return s.loop }, To: s.reporters}},
	}
	if len(opts.Extensions) > 0 {
		if s.stage, err = extension.New(extension.Config{
			Extensions: opts.Extensions, Apply: s.server.Apply, Log: opts.Log,
			Tell: func(ctx context.Context, gateway object.Name, wrong []string) {
				s.loop.TakeExtensions(ctx, gateway, wrong)
			},
		}); err != nil {
			return nil, err
		}
		driven.Extensions = s.stage
	}
	s.loop = loop.New(driven)
	return s, nil
}

// membersPatience is how long a start waits for member clusters that don't answer.
const membersPatience = 10 * time.Second

// open prepares the sources, and returns their names.
func (s *Standalone) open() (names []string, err error) {
	o := s.opts
	if len(o.Paths) > 0 || len(o.Remotes) == 0 {
		files, err := file.New(file.Options{
			Paths: o.Paths, Stdin: o.Stdin, Kinds: s.kinds, Experimental: o.Experimental, StateDir: o.StateDir, Strict: !o.Lenient, Log: o.Log,
		})
		if err != nil {
			return nil, err
		}
		s.inputs, names = append(s.inputs, files.Run), append(names, strings.Join(o.Paths, ", "))
	}
	for _, of := range o.Remotes {
		of.Kinds, of.Experimental, of.StateDir, of.Log = s.kinds, o.Experimental, o.StateDir, o.Log
		r, err := remote.New(of)
		if err != nil {
			return nil, err
		}
		s.inputs, names = append(s.inputs, r.Run), append(names, r.Name())
		s.remotes = append(s.remotes, r)
		s.reporters[len(s.inputs)-1] = r
	}
	if len(o.Clusters) > 0 {
		if s.members, err = members.New(members.Options{Clusters: o.Clusters, Patience: membersPatience, Log: o.Log}); err != nil {
			return nil, err
		}
		s.inputs, names = append(s.inputs, s.members.Run), append(names, members.Name)
	}
	return names, nil
}

// Run serves until ctx ends, then drains and stops the Envoys.
func (s *Standalone) Run(ctx context.Context) error {
	defer loop.LimitHeap()()
	// The first load makes far more garbage than it keeps, and time counts then.
	s.usualGC = debug.SetGCPercent(loadingGC)
	defer s.loadingDone()
	group, watching := errgroup.WithContext(ctx)
	silent := len(s.inputs) // of the loop
	for i, in := range s.inputs {
		group.Go(func() error {
			first := sync.OnceFunc(func() {
				s.loop.Call(watching, func() {
					if silent--; silent == 0 {
						s.load()
					}
				})
			})
			return in(watching, func(b source.Batch) {
				s.loop.Emit(watching, i, b)
				first()
			})
		})
	}
	group.Go(func() error { return s.loop.Run(watching) })
	group.Go(func() error { return s.keySets.Run(watching) })
	if s.stage != nil {
		group.Go(func() error { return s.stage.Run(watching) })
	}
	err := group.Wait()
	if s.release != nil {
		s.release.Stop()
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil
	}
	stopped := make(chan struct{})
	go s.loop.Ignore(stopped)
	s.fleet.StopAll()
	s.stopServing()
	s.server.Stop()
	close(stopped)
	return err
}

// loadingGC is GOGC until everything has been read once. The more it is, the less CPU a load takes, and the more
// memory stays that little is in, since what is kept lies among garbage: with 100,000 routes 1.25 GB for 400,
// 0.95 for 200 and 0.8 for 100, with which a load takes half as much CPU again as with 400.
const loadingGC = 200

// releaseAfter is how long after that its memory is given back to the system. Proxies are being told then, which
// must not wait for it.
const releaseAfter = 10 * time.Second

// loadingDone takes the collector back to what it was set to.
func (s *Standalone) loadingDone() { debug.SetGCPercent(s.usualGC) }

// load notes that all sources have been read once; the loop runs it.
func (s *Standalone) load() {
	s.mu.Lock()
	s.loaded = true
	s.mu.Unlock()
	s.loadingDone()
	s.release = time.AfterFunc(releaseAfter, debug.FreeOSMemory)
	s.clear()
	s.opts.OnCommit()
}

// clear stops Envoys of Gateways that are gone, once it is known which those are: one that can't be computed is there
// perhaps, and goes on with what it has.
func (s *Standalone) clear() {
	if s.loaded && !s.cleared && s.pipeline.Unsettled() == nil {
		s.cleared = true
		s.fleet.StopLeftovers()
	}
}

// Committed takes in a commit for those who look at this process.
func (s *Standalone) Committed(c *flow.Commit) {
	s.times.Take(s.pipeline, c, time.Now())
	s.changes = append(s.changes, s.troubled.Take(s.pipeline, c)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ch := range flow.Changes(c, s.pipeline.Fleets) {
		if !ch.Has {
			delete(s.synced, ch.Key)
		}
	}
}

// Published tells who wants to know that there was a commit.
func (s *Standalone) Published() {
	s.mu.Lock()
	for _, gateway := range s.loop.Heard {
		s.synced[gateway] = s.loop.States.Merged(gateway).Synced
	}
	s.mu.Unlock()
	if len(s.changes) > 0 && s.opts.OnStates != nil {
		s.opts.OnStates(s.changes)
	}
	s.changes = nil
	s.clear()
	s.opts.OnCommit()
}

// Waiting returns the paths that the user named, can't be read, and of which
// nothing is in force: a directory that is mounted late, say.
func (s *Standalone) Waiting() []string {
	var paths []string
	s.pipeline.Engine.View(func(c *flow.Ctx) {
		for _, list := range flow.All(c, s.pipeline.Problems) {
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
func (s *Standalone) Hurry() { s.fleet.Hurry() }

// Ready reports whether the first configuration is in force: every Gateway's
// proxy has acknowledged it, or refused a part of it, which is that part's
// problem alone.
func (s *Standalone) Ready() (bool, string) {
	s.mu.Lock()
	loaded := s.loaded
	s.mu.Unlock()
	if !loaded {
		for _, st := range s.elsewhere() {
			if st.AsOf.IsZero() {
				return false, strings.TrimSuffix(st.Address+" has not told its objects yet: "+st.Error, ": ")
			}
		}
		return false, "the files have not been read yet"
	}
	ready, why := true, ""
	s.pipeline.Engine.View(func(c *flow.Ctx) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for gateway := range flow.All(c, s.pipeline.Fleets) {
			if !s.synced[gateway] {
				ready, why = false, "the proxy of Gateway "+gateway.String()+" has no configuration yet"
			}
		}
	})
	return ready, why
}
