package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/extension"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/figures"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/keyset/fetch"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/loop"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
	"github.com/gatehouse-dev/gatehouse/internal/source/members"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Options configure a Cluster.
type Options struct {
	Config *configuration.Configuration
	REST   *rest.Config
	Self   Replica
	Logs   configuration.Logs
	// Kinds are those that are read; nil is kind.All, or kind.WithIngresses where these are a source.
	Kinds *kind.Table
	// Refused, if not nil, reports whether Config has been changed to one that can't be used.
	Refused func() bool
	// Configured, if not nil, is sent why a changed Config can't be used, and nil once it can again.
	Configured <-chan error
	// Admin is the address of the admin interface, on loopback; empty for none.
	Admin string
	// Static, if not nil, makes it `gatehouse static-mode`: it serves one Gateway with an
	// Envoy of its own.
	Static *Static
}

// Replica names one of several controllers that share the work.
type Replica struct {
	Namespace, Name string
	IP              string // where other replicas reach it
	// Host is where its ports are opened; empty for all addresses.
	Host string
}

// Cluster serves the objects of a Kubernetes cluster. All replicas compute and serve
// everything; the one that leads writes status and infrastructure.
type Cluster struct {
	opts        Options
	config      *configuration.Configuration
	kinds       *kind.Table // of which there are tables
	log         *slog.Logger
	registry    *prometheus.Registry
	tooMany     *prometheus.CounterVec // connections that were refused
	scheme      *runtime.Scheme
	direct      client.WithWatch // to the API server itself
	set         kubernetes.Interface
	recorder    events.EventRecorder
	broadcaster events.EventBroadcaster
	cache       cache.Cache
	source      *kube.Source
	remotes     []*remote.Source    // by index of the sources; nil for those of another kind
	reporters   loop.Reporters      // those that are there, by their index
	members     *members.Source     // nil for none
	stateDirs   map[string]*os.File // the locks of those of remotes
	expected    []string            // kinds of which earlier controllers have read objects
	pipeline    *pipeline.Pipeline
	server      *xds.Server
	loop        *loop.Loop
	keySets     *fetch.Fetcher
	stage       *extension.Stage // nil without extensions
	proxies     proxies          // where they run
	selection   selection        // what this process serves
	running     context.Context  // ends with Run
	stop        context.CancelFunc

	// Of the loop:
	shadows  shadows
	statuses map[object.Key]any // that have changed since the last publication
	term     *term              // while this replica leads
	serves   bool               // usable is closed
	silent   int                // see countSources

	troubled  *view.Troubled
	channel   chan struct{}          // closed when the Gateway API's channel is another
	published chan struct{}          // closed when all that exists has been taken in
	usable    chan struct{}          // closed when that is a whole configuration too
	claim     *claim                 // on the controllerName; nil for none
	turn      sync.Mutex             // of a term
	leads     atomic.Pointer[term]   // term, for other goroutines
	leader    atomic.Pointer[string] // where the leader is reached, unless it is us
}

// proxies is where the proxies of Gateways run.
type proxies interface {
	loop.Observer
	// services are what runs beside the loop, each until its context ends.
	services() map[string]func(context.Context) error
	// work is what a replica that leads does for the proxies.
	work(metrics prometheus.Registerer) ([]work, error)
	// ready reports whether proxies are served, once all objects have been read.
	ready() (ok bool, why string)
	// heard notes what the proxies of this process say.
	heard(gateway object.Name, state xds.State)
	// ended is called when no leader is elected any more.
	ended(ctx context.Context)
	// stop ends what runs in this process, when all else has ended.
	stop()
}

// work is something that a replica does while it leads. The loop calls its methods,
// but for run.
type work interface {
	// begin takes in all that there is, and committed what a commit changes.
	begin(e *flow.Engine)
	committed(c *flow.Commit)
	// complete says that all Gateways are known: what is not among them may go.
	complete()
	// changed notes that a live object is another than before; any goroutine calls it.
	changed(k object.Key)
	// run does the work until ctx ends.
	run(ctx context.Context) error
}

// selection is what of a cluster a process serves.
type selection interface {
	// take leaves of a batch what is served.
	take(b source.Batch) source.Batch
	// statuses adds the statuses of objects that are not served for that, as far as they
	// have changed, and passed yields all of them.
	statuses(changed map[object.Key]any)
	passed(yield func(object.Key, any))
	// owns says which of the entries with our name in a status are this process's, by
	// what they refer to; nil for all.
	owns() func(client.Object, *gwv1.ParentReference) bool
	// writes reports whether the status of an object is this process's to write.
	writes(k object.Key) bool
}

// ErrOtherChannel ends a Cluster that is to start anew, since the cluster has another
// channel of the Gateway API than at the start.
var ErrOtherChannel = errors.New("the Gateway API's channel has changed")

// New prepares a controller. It asks the API server for what it serves.
func New(ctx context.Context, opts Options) (*Cluster, error) {
	c := &Cluster{
		opts: opts, config: opts.Config, kinds: kindsFor(opts), log: opts.Logs.For(configuration.LogControl), registry: prometheus.NewRegistry(),
		scheme: runtime.NewScheme(), shadows: newShadows(), statuses: map[object.Key]any{}, troubled: view.NewTroubled(),
		stateDirs: map[string]*os.File{}, reporters: loop.Reporters{}, channel: make(chan struct{}), published: make(chan struct{}), usable: make(chan struct{}),
	}
	c.running, c.stop = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // Run calls it
	if err := c.connect(); err != nil {
		return nil, err
	}
	channel, err := kube.Channel(ctx, c.direct)
	if err != nil {
		return nil, err
	}
	c.server = xds.New(xds.Options{
		Log: opts.Logs.For(configuration.LogXDS), OnState: c.hear, MaxAge: c.config.XDS.MaxConnectionAge.Duration,
		Figures: &figures.Bounds{Gateway: c.config.Figures.MaxSeriesPerGateway, Namespace: c.config.Figures.MaxSeriesPerNamespace},
	})
	if opts.Static != nil {
		c.composeStatic(*opts.Static, channel)
	} else if !c.config.Has(configuration.RoleConfiguration) {
		if err := c.composeFleets(ctx, channel); err != nil {
			return nil, err
		}
	} else if err := c.composeProvisioned(ctx, channel); err != nil {
		return nil, err
	}
	if err := c.watch(channel); err != nil {
		return nil, err
	}
	if err := c.openRemotes(channel); err != nil {
		return nil, err
	}
	if err := c.openMembers(); err != nil {
		return nil, err
	}
	c.silent = c.countSources()
	derive, err := c.ingresses()
	if err != nil {
		return nil, err
	}
	driven := loop.Options{
		Pipeline: c.pipeline, Server: c.server, Log: c.log, Sources: c.sourceNames(),
		Derive: derive, Shadowed: c.shadows.note, Select: c.selection.take,
		Contents: c.source, ContentsSource: c.clusterSource(), KeySets: c.fetcher(),
		Late: c.late(), Observers: []loop.Observer{c.proxies, c},
	}
	if len(c.config.Extensions) > 0 && c.config.Has(configuration.RoleConfiguration) {
		if c.stage, err = extension.New(extension.Config{
			Extensions: c.config.Extensions, Apply: c.server.Apply, Log: opts.Logs.For(configuration.LogXDS),
			Tell: func(ctx context.Context, gateway object.Name, wrong []string) {
				c.loop.TakeExtensions(ctx, gateway, wrong)
			},
		}); err != nil {
			return nil, err
		}
		driven.Extensions = c.stage
	}
	c.loop = loop.New(driven)
	c.broadcaster = events.NewBroadcaster(&events.EventSinkImpl{Interface: c.set.EventsV1()})
	c.recorder = c.broadcaster.NewRecorder(c.scheme, "gatehouse")
	if opts.Static == nil && !c.config.LeaderElection.Disabled {
		c.claim = newClaim(c.config, opts.Self, c.set, c.log)
	}
	c.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	c.registry.MustRegister(c.admin().Collectors()...)
	c.registry.MustRegister(remote.Collector(c.elsewhere))
	c.tooMany = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_connections_refused_total",
		Help: "Connections to the controller's ports that were closed because there were too many, in total or of their address.",
	}, []string{"bound"})
	c.registry.MustRegister(c.tooMany, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatehouse_leader",
		Help: "1 for the replica that writes status and infrastructure, else 0.",
	}, func() float64 {
		if c.leads.Load() == nil {
			return 0
		}
		return 1
	}))
	return c, nil
}

// connect makes the clients of the API server.
func (c *Cluster) connect() error {
	rest := c.opts.REST
	rest.QPS, rest.Burst = c.config.APIServer.QPS, c.config.APIServer.Burst
	rest.UserAgent = "gatehouse"
	if err := errors.Join(clientgoscheme.AddToScheme(c.scheme), c.kinds.AddToScheme(c.scheme)); err != nil {
		return err
	}
	var err error
	if c.direct, err = client.NewWithWatch(rest, client.Options{Scheme: c.scheme}); err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	if c.set, err = kubernetes.NewForConfig(rest); err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	return nil
}

// watch prepares the cache and what reads it.
func (c *Cluster) watch(channel string) error {
	from := c.config.Cluster()
	kinds := c.reading()
	options := kube.CacheOptions(kinds, from.Namespaces...)
	options.Scheme = c.scheme
	var err error
	if c.cache, err = cache.New(c.opts.REST, options); err != nil {
		return fmt.Errorf("watch the API server: %w", err)
	}
	o := kube.Options{
		Cache: c.cache, Client: c.direct, Kinds: kinds, Namespaces: from.Namespaces, Experimental: channel == kube.Experimental,
		Log: c.opts.Logs.For(configuration.LogSource), Changed: c.changed, Expected: c.expected,
	}
	if !c.config.Has(configuration.RoleConfiguration) {
		o.Foreign = []foreign.Kind{}
	}
	if c.opts.Static == nil { // whose Envoy would end with it
		o.OtherChannel = sync.OnceFunc(func() { close(c.channel) })
	}
	if from.NamespaceSelector != nil {
		if o.Selector, err = metav1.LabelSelectorAsSelector(from.NamespaceSelector); err != nil {
			return err
		}
	}
	c.source, err = kube.New(o)
	return err
}

// pipelineOptions returns the options of the pipeline behind `gatehouse controller`.
func pipelineOptions(cfg *configuration.Configuration, channel string) pipeline.Options {
	o := pipeline.Provisioned(cfg.ControllerName, proxy.DefaultAuthorities, reads(cfg.Cluster()))
	if cfg.Infrastructure.Type == configuration.InfrastructureNone {
		o.Mode = features.Unmanaged
	}
	o.Topology.Experimental = channel == kube.Experimental
	o.Places = cfg.Infrastructure.Places()
	o.Topology.FleetNamespace = o.Places.Namespace
	if of := ingressOptions(cfg); of != nil {
		o.ConfigMaps = of.ConfigMaps
	}
	return o
}

// Run serves until ctx ends. Proxies go on with what they have, and find another
// replica or the next process.
func (c *Cluster) Run(ctx context.Context) error {
	defer loop.LimitHeap()()
	defer c.unlockStates()
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, c.stop)() // who waits for the loop must not outlive it
	run := func(what string, f func(context.Context) error) {
		group.Go(func() error {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return ctx.Err()
		})
	}
	ports := c.config.Ports
	if ports.Health != 0 {
		run("health", func(ctx context.Context) error { return c.servePages(ctx, ports.Health, c.health()) })
	}
	if ports.Metrics != 0 {
		run("metrics", func(ctx context.Context) error { return c.servePages(ctx, ports.Metrics, c.metrics()) })
	}
	if c.opts.Admin != "" {
		run("admin interface", func(ctx context.Context) error { return c.serveAdmin(ctx) })
	}
	run("watch the API server", c.cache.Start)
	run("Gateway API", func(ctx context.Context) error {
		select {
		case <-c.channel:
			return ErrOtherChannel
		case <-ctx.Done():
			return nil
		}
	})
	run("events", c.record)
	run("loop", c.loop.Run)
	if c.stage != nil {
		run("extensions", c.stage.Run)
	}
	run("key sets", c.keySets.Run)
	c.runSources(run)
	for what, service := range c.proxies.services() {
		run(what, service)
	}
	if o := c.config.Figures.OTLP; o.Endpoint != "" && c.config.Has(configuration.RoleConfiguration) {
		exporter := &figures.Exporter{
			Sums: c.server.Sums(), Endpoint: o.Endpoint, Interval: o.Interval.Duration, Instance: c.opts.Self.Name, Log: c.opts.Logs.For(configuration.LogControl),
		}
		run("figures by OTLP", func(ctx context.Context) error { exporter.Run(ctx); return nil })
	}
	run("leader election", c.elect)
	if c.claim != nil {
		run("claim", func(ctx context.Context) error { return c.claim.watch(ctx, c.recorder) })
	}
	if c.opts.Configured != nil {
		run("configuration", c.tellConfigured)
	}
	err := group.Wait()
	c.proxies.stop()
	c.server.Stop()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// countSources counts those that have something to tell before all that exists is known.
func (c *Cluster) countSources() (n int) {
	for _, s := range c.config.Sources {
		switch {
		case s.Ingress != nil: // it brings what others do
		case len(s.Clusters) > 0 && c.members == nil:
		default:
			n++
		}
	}
	if !c.config.Has(configuration.RoleConfiguration) {
		n++ // what is asked of fleets
	}
	return n
}

// told notes that one of them has told all that it has.
func (c *Cluster) told(ctx context.Context) {
	c.loop.Call(ctx, func() {
		if c.silent--; c.silent == 0 {
			go c.opening(ctx)
		}
	})
}

// runSources runs the sources, and notes when all have told all they have.
func (c *Cluster) runSources(run func(string, func(context.Context) error)) {
	for i, s := range c.config.Sources {
		if s.Ingress != nil {
			continue
		}
		first := true
		emit := func(ctx context.Context, b source.Batch) {
			c.loop.Emit(ctx, i, b)
			if !first {
				return
			}
			first = false
			c.told(ctx)
		}
		if s.Kubernetes != nil {
			run("Kubernetes source", func(ctx context.Context) error {
				return c.source.Run(ctx, func(b source.Batch) { emit(ctx, b) })
			})
			continue
		}
		if len(s.Clusters) > 0 {
			if c.members == nil {
				continue
			}
			run("member clusters", func(ctx context.Context) error {
				return c.members.Run(ctx, func(b source.Batch) { emit(ctx, b) })
			})
			continue
		}
		if r := c.remotes[i]; r != nil {
			run("remote source", func(ctx context.Context) error {
				return r.Run(ctx, func(b source.Batch) { emit(ctx, b) })
			})
			continue
		}
		run("file source", func(ctx context.Context) error {
			files, err := file.New(file.Options{Paths: s.Files.Paths, Kinds: c.kinds, Experimental: c.pipeline.Options.Topology.Experimental, Log: c.opts.Logs.For(configuration.LogSource)})
			if err != nil {
				return err
			}
			return files.Run(ctx, func(b source.Batch) { emit(ctx, b) })
		})
	}
}

// remotePatience is how long a config server is waited for at the start. Meanwhile proxies go on with what
// they have, and nothing new is served.
const remotePatience = 5 * time.Minute

// openRemotes prepares the sources that are config servers.
func (c *Cluster) openRemotes(channel string) error {
	for _, s := range c.config.Sources {
		var r *remote.Source
		if of := s.Remote; of != nil {
			stateDir, err := c.lockState(of.StateDir)
			if err != nil {
				return err
			}
			r, err = remote.New(remote.Options{
				Address: of.Address, TokenFile: of.TokenFile, StateDir: stateDir, Kinds: c.kinds, Experimental: channel == kube.Experimental,
				TLS:      remote.TLS{CA: of.TLS.CAFile, Cert: of.TLS.CertFile, Key: of.TLS.KeyFile, ServerName: of.TLS.ServerName, Plaintext: of.TLS.Plaintext},
				Patience: remotePatience, Log: c.opts.Logs.For(configuration.LogSource),
			})
			if err != nil {
				return err
			}
		}
		if r != nil {
			c.reporters[len(c.remotes)] = r
		}
		c.remotes = append(c.remotes, r)
	}
	return nil
}

// clusterSource is the index of the source that is the cluster.
func (c *Cluster) clusterSource() int {
	return slices.IndexFunc(c.config.Sources, func(s configuration.Source) bool { return s.Kubernetes != nil })
}

// opening lets proxies in as soon as the contents that were asked for are known, or
// known not to be had: a listener must not be taken away because its certificate
// comes a second late.
func (c *Cluster) opening(ctx context.Context) {
	try := time.NewTicker(openingRetry)
	defer try.Stop()
	warned := time.Now()
	for opened := false; !opened && ctx.Err() == nil; {
		missing := 0
		c.loop.Call(ctx, func() {
			if missing = c.source.Unread(); missing > 0 && !c.loop.Waits() {
				c.loop.Retry()
			}
			if opened = missing == 0 && !c.loop.Waits(); opened {
				close(c.published)
				c.countAll()
				c.settle()
			}
		})
		if !opened {
			if missing > 0 && time.Since(warned) > openingWarning {
				warned = time.Now()
				c.log.Warn("waiting for the contents of Secrets and ConfigMaps before proxies are served", "missing", missing)
			}
			select {
			case <-try.C:
			case <-ctx.Done():
			}
		}
	}
}

// How often it is looked whether all contents are known, and how often it is said that
// they are not.
const (
	openingRetry   = 50 * time.Millisecond
	openingWarning = time.Second
)

// whole waits for the first whole configuration; false means that ctx ended first.
func (c *Cluster) whole(ctx context.Context) bool {
	select {
	case <-c.usable:
		return true
	case <-ctx.Done():
		return false
	}
}
