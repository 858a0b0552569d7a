package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
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

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/features"
	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/proxy"
	"github.com/gatehouse-dev/gatehouse/internal/relay"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/file"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// ClusterOptions configure `gatehouse controller`.
type ClusterOptions struct {
	Config *config.Configuration
	REST   *rest.Config
	Self   Replica
	Logs   config.Logs
	// Admin is the address of the admin interface, on loopback; empty for none.
	Admin string
	// Static, if not nil, makes it `gatehouse static-mode`.
	Static *Static
}

// Replica names one of several controllers that share the work.
type Replica struct {
	Namespace, Name string
	IP              string // where other replicas reach it
	// Host is where its ports are opened; empty for all addresses.
	Host string
}

// Cluster serves the objects of a Kubernetes cluster. All replicas compute and
// serve everything; the one that leads writes status and infrastructure.
type Cluster struct {
	opts        ClusterOptions
	config      *config.Configuration
	log         *slog.Logger
	registry    *prometheus.Registry
	scheme      *runtime.Scheme
	direct      client.WithWatch // to the API server itself
	set         kubernetes.Interface
	recorder    events.EventRecorder
	broadcaster events.EventBroadcaster
	cache       cache.Cache
	source      *kube.Source
	merge       *source.Merge // nil with one source
	pipeline    *Pipeline
	server      *xds.Server
	relay       *relay.Client
	events      eventQueue
	identity    *identity.Authority
	static      *static         // nil where fleets are elsewhere
	running     context.Context // ends with Run
	stop        context.CancelFunc

	// Of the loop:
	states  proxyStates
	present map[object.Name]bool // Gateways with a fleet
	shadows shadows
	came    []object.Name // Gateways of which proxies had said something, to be heard in the next transaction
	gone    []object.Name // Gateways whose fleet went, to be unheard in the next transaction
	term    *term         // while this replica leads

	channel   chan struct{} // closed when the Gateway API's channel is another
	published chan struct{} // closed when all that exists has been taken in
	usable    chan struct{} // closed when that is a whole configuration too
	serves    bool          // usable is closed; of the loop
	fleets    fleets
	turn      sync.Mutex             // of a term
	leads     atomic.Pointer[term]   // term, for other goroutines
	leader    atomic.Pointer[string] // where the leader is reached, unless it is us
}

// ErrOtherChannel ends a Cluster that is to start anew, since the cluster has another
// channel of the Gateway API than at the start.
var ErrOtherChannel = errors.New("the Gateway API's channel has changed")

// NewCluster prepares a controller. It asks the API server for what it serves.
func NewCluster(ctx context.Context, opts ClusterOptions) (*Cluster, error) {
	c := &Cluster{
		opts: opts, config: opts.Config, log: opts.Logs.For("control"), registry: prometheus.NewRegistry(),
		scheme: runtime.NewScheme(), events: newEventQueue(), states: proxyStates{}, present: map[object.Name]bool{}, shadows: newShadows(), channel: make(chan struct{}), published: make(chan struct{}), usable: make(chan struct{}),
	}
	c.running, c.stop = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // Run calls it
	opts.REST.QPS, opts.REST.Burst = c.config.APIServer.QPS, c.config.APIServer.Burst
	opts.REST.UserAgent = "gatehouse"
	if err := errors.Join(clientgoscheme.AddToScheme(c.scheme), kube.AddToScheme(c.scheme)); err != nil {
		return nil, err
	}
	var err error
	if c.direct, err = client.NewWithWatch(opts.REST, client.Options{Scheme: c.scheme}); err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	if c.set, err = kubernetes.NewForConfig(opts.REST); err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	if err := c.watchCluster(ctx); err != nil {
		return nil, err
	}
	if opts.Static == nil {
		if err := c.remember(ctx); err != nil {
			return nil, err
		}
	}
	c.server = xds.New(xds.Options{
		Log:     opts.Logs.For("xds"),
		OnState: c.hear,
	})
	published := ""
	if c.config.Infrastructure.Type == config.InfrastructureNone {
		published = "gatehouse-ca" // else each fleet has it
	}
	c.identity = identity.NewAuthority(identity.Options{
		Client: c.direct, Published: published, Namespace: opts.Self.Namespace, Pod: opts.Self.Name, Service: c.config.Infrastructure.Service,
		RootLife: c.config.Identity.AuthorityLifetime.Duration, Life: c.config.Identity.ProxyLifetime.Duration,
		Log: opts.Logs.For("identity"),
	})
	c.relay = c.newRelay()
	if opts.Static != nil {
		c.serveStatic(*opts.Static)
	}
	c.broadcaster = events.NewBroadcaster(&events.EventSinkImpl{Interface: c.set.EventsV1()})
	c.recorder = c.broadcaster.NewRecorder(c.scheme, "gatehouse")
	c.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	c.registry.MustRegister(c.admin().collectors()...)
	return c, nil
}

// watchCluster prepares the cache and what reads it.
func (c *Cluster) watchCluster(ctx context.Context) error {
	channel, err := kube.Channel(ctx, c.direct)
	if err != nil {
		return err
	}
	experimental := channel == kube.Experimental
	from := c.config.Cluster()
	options := kube.CacheOptions(from.Namespaces...)
	options.Scheme = c.scheme
	if c.cache, err = cache.New(c.opts.REST, options); err != nil {
		return fmt.Errorf("watch the API server: %w", err)
	}
	o := kube.Options{
		Cache: c.cache, Client: c.direct, Namespaces: from.Namespaces, Experimental: experimental,
		Log: c.opts.Logs.For("source"), Changed: c.changed,
	}
	if c.opts.Static == nil { // whose Envoy would end with it
		o.OtherChannel = sync.OnceFunc(func() { close(c.channel) })
	}
	if from.NamespaceSelector != nil {
		if o.Selector, err = metav1.LabelSelectorAsSelector(from.NamespaceSelector); err != nil {
			return err
		}
	}
	if c.source, err = kube.New(o); err != nil {
		return err
	}
	pipeline := clusterPipeline(c.config, experimental)
	if s := c.opts.Static; s != nil {
		pipeline = staticPipeline(c.config.ControllerName, experimental, s.Address)
	}
	c.pipeline = NewPipeline(pipeline)
	return nil
}

// clusterPipeline returns the options of the pipeline behind `gatehouse controller`.
func clusterPipeline(cfg *config.Configuration, experimental bool) Options {
	mode := features.Fleets
	if cfg.Infrastructure.Type == config.InfrastructureNone {
		mode = features.Unmanaged
	}
	return Options{
		Addresses: []string{"0.0.0.0"}, Mode: mode,
		Topology: topology.Options{
			ControllerName:    cfg.ControllerName,
			Experimental:      experimental,
			Reads:             reads(cfg.Cluster()),
			Provisioned:       true,
			Unprivileged:      true,
			SystemAuthorities: proxy.DefaultAuthorities,
			Settings:          provisionedSettings(),
			CheckSettings:     checkFleetSettings,
		},
	}
}

// Run serves until ctx ends. Proxies go on with what they have, and find another
// replica or the next process.
func (c *Cluster) Run(ctx context.Context) error {
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
		run("health", func(ctx context.Context) error { return serveHTTP(ctx, c.at(ports.Health), c.health()) })
	}
	if ports.Metrics != 0 {
		run("metrics", func(ctx context.Context) error { return serveHTTP(ctx, c.at(ports.Metrics), c.metrics()) })
	}
	if c.opts.Admin != "" {
		run("admin interface", func(ctx context.Context) error { return serveHTTP(ctx, c.opts.Admin, c.admin().handler()) })
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
	run("loop", func(ctx context.Context) error { return c.events.loop(ctx, c.commit) })
	c.runSources(run)
	if c.static == nil {
		run("identity", func(ctx context.Context) error { c.identity.Run(ctx); return nil })
		run("xDS", c.serveXDS)
		run("API", c.serveAPI)
		run("relay", c.relay.Run)
	}
	run("leader election", c.elect)
	err := group.Wait()
	if c.static != nil {
		c.static.drain()
	}
	c.server.Stop()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// record sends what is recorded to the API server.
func (c *Cluster) record(ctx context.Context) error {
	if err := c.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	c.broadcaster.Shutdown()
	return nil
}

// runSources runs the sources, and notes when all have told all they have.
func (c *Cluster) runSources(run func(string, func(context.Context) error)) {
	silent := len(c.config.Sources) // of the loop
	if silent > 1 {
		c.merge = source.NewMerge(silent)
		c.merge.Shadowed = c.shadows.note
	}
	for i, s := range c.config.Sources {
		first := true
		emit := func(ctx context.Context, b source.Batch) {
			if c.merge == nil {
				c.events.emit(ctx, b)
			} else { // in the loop, which also asks whose an object is
				c.events.call(ctx, func() { c.commit([]source.Batch{c.merge.Take(i, b)}, nil) })
			}
			if !first {
				return
			}
			first = false
			c.events.call(ctx, func() {
				if silent--; silent == 0 {
					go c.opening(ctx)
				}
			})
		}
		if s.Kubernetes != nil {
			run("Kubernetes source", func(ctx context.Context) error {
				return c.source.Run(ctx, func(b source.Batch) { emit(ctx, b) })
			})
			continue
		}
		run("file source", func(ctx context.Context) error {
			files, err := file.New(file.Options{Paths: s.Files.Paths, Experimental: c.pipeline.opts.Topology.Experimental, Log: c.opts.Logs.For("source")})
			if err != nil {
				return err
			}
			return files.Run(ctx, func(b source.Batch) { emit(ctx, b) })
		})
	}
}

// clusterSource is the index of the source that is the cluster.
func (c *Cluster) clusterSource() int {
	return slices.IndexFunc(c.config.Sources, func(s config.Source) bool { return s.Kubernetes != nil })
}

// opening lets proxies in as soon as the contents that were asked for are known, or
// known not to be had: a listener must not be taken away because its certificate
// comes a second late.
func (c *Cluster) opening(ctx context.Context) {
	try := time.NewTicker(fetchTimeout / 4)
	defer try.Stop()
	for missing := 1; missing > 0 && ctx.Err() == nil; {
		c.events.call(ctx, func() {
			if missing = c.source.Unread(); missing > 0 {
				c.commit(nil, nil)
				missing = c.source.Unread()
			}
			if missing == 0 {
				close(c.published)
				c.settle()
			}
		})
		if missing > 0 {
			c.log.Warn("waiting for the contents of Secrets and ConfigMaps before proxies are served", "missing", missing)
			<-try.C
		}
	}
}

// serveXDS serves proxies once there is a whole configuration.
func (c *Cluster) serveXDS(ctx context.Context) error {
	if !c.whole(ctx) {
		return nil
	}
	lis, err := net.Listen("tcp", c.at(c.config.Ports.XDS))
	if err != nil {
		return err
	}
	return c.server.ServeTLS(ctx, lis, xds.TLS{
		Config: c.identity.ServerTLS(tls.RequireAndVerifyClientCert, "h2"), Identify: c.identity.Proxy, Changed: c.identity.Next,
	})
}

// serveAPI serves certificates to proxies, and leads the other replicas.
func (c *Cluster) serveAPI(ctx context.Context) error {
	if !c.whole(ctx) {
		return nil
	}
	lis, err := net.Listen("tcp", c.at(c.config.Ports.API))
	if err != nil {
		return err
	}
	options := identity.ServerOptions{
		Authority: c.identity, Client: c.direct, Fleet: c.fleets.serviceAccount,
		AnySource: c.config.Identity.AnyAddress, Log: c.opts.Logs.For("identity"),
	}
	if c.config.Infrastructure.Type == config.InfrastructureKubernetes { // else fleets are somebody else's
		options.Former = c.isFormer
	}
	server := identity.NewServer(options)
	c.registry.MustRegister(server.Collectors()...)
	server.HandleControllers("POST "+relay.Path, c.relayed())
	return server.Serve(ctx, lis)
}

// whole waits for the first whole configuration; false means that ctx ended first.
func (c *Cluster) whole(ctx context.Context) bool {
	select {
	case <-c.usable:
		return true
	case <-ctx.Done():
		return false
	}
}
