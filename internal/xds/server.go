package xds

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/figures"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Options configure a Server.
type Options struct {
	// Log is for operators; slog.Default if nil.
	Log *slog.Logger

	// OnState is called with a Gateway's state when it has changed. Calls come one at a
	// time, each with the latest state: states between two calls are left out. It may block,
	// which delays only further calls. It must not call Stop.
	OnState func(gateway object.Name, state State)

	// BindRetry is the longest pause before a listener that could not bind its address is
	// tried again, 5 s if zero: the port may have become free. The first pauses are far
	// shorter, and a listener that can bind after them is never reported.
	BindRetry time.Duration

	// Grace is how long a proxy that connects has to name all that it subscribes to, 2 s if
	// zero. Until then nothing is removed from it, unless it has asked for listeners and
	// routes, since it is not known what it may still route to; and one that has named
	// listeners gets no others, unless it has named routes as well.
	Grace time.Duration

	// MaxAge is how long a connection lasts at most, a tenth more or less, so that proxies spread over replicas that
	// have come later; for as long as it can if zero.
	MaxAge time.Duration

	// Figures are the bounds of what is kept of what proxies count; the default ones if nil.
	Figures *figures.Bounds
}

// Server holds the desired configuration of every Gateway and serves it.
type Server struct {
	types          []resourceType // by envoy.Type
	log            *slog.Logger
	bindRetry      time.Duration
	grace          time.Duration
	maxAge         time.Duration
	unknownTimeout time.Duration // how long a proxy waits for a Gateway that has no Update
	metrics        *metrics
	behindAfter    time.Duration // how long a proxy may take to answer before it is behind
	maxAwait       time.Duration // how long listeners and routes wait for what a proxy doesn't ask for
	bindReport     time.Duration // how long an address is in use before that is reported
	refusals       *refusals
	figures        *figures.Sums
	reports        reports

	stop     chan struct{}
	stopOnce sync.Once

	mu       sync.Mutex
	gateways map[object.Name]*gateway
	lastID   uint64 // of a session
}

// New returns a server without Gateways.
func New(o Options) *Server { return newServer(o, resourceTypes()) }

func newServer(o Options, types []resourceType) *Server {
	s := &Server{
		types:          types,
		log:            o.Log,
		figures:        &figures.Sums{Began: time.Now(), Bounds: figures.DefaultBounds},
		bindRetry:      o.BindRetry,
		grace:          o.Grace,
		maxAge:         o.MaxAge,
		unknownTimeout: defaultUnknownTimeout,
		behindAfter:    defaultBehindAfter,
		maxAwait:       defaultMaxAwait,
		bindReport:     defaultBindReport,
		metrics:        newMetrics(types),
		reports:        reports{onState: o.OnState},
		stop:           make(chan struct{}),
		gateways:       map[object.Name]*gateway{},
	}
	if o.Figures != nil {
		s.figures.Bounds = *o.Figures
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.bindRetry == 0 {
		s.bindRetry = 5 * time.Second
	}
	if s.grace == 0 {
		s.grace = 2 * time.Second
	}
	s.reports.state = s.state
	s.refusals = newRefusals(s.log, s.metrics)
	return s
}

// Apply makes updates the desired configuration. Those of one Gateway that stand side by
// side are taken in one step. It never waits for a proxy.
func (s *Server) Apply(updates []Update) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, updates := range ByGateway(updates) {
		s.gateway(name)
		s.dropRevisions(name, now)
		for _, g := range s.records(name) {
			g.apply(updates, now)
		}
		if updates[len(updates)-1].Gone && !s.isUsed(name) {
			delete(s.gateways, name)
			s.figures.Forget(name)
		}
	}
}

// Stop ends every Serve and waits until no call of OnState runs; none comes later.
func (s *Server) Stop() {
	s.stopOnce.Do(func() { close(s.stop) })
	s.reports.close()
}

// Collectors returns the server's metrics. The number of series is bounded: none is labelled with a
// proxy or a resource, one with a Gateway, and what proxies have counted with routes, see package figures.
func (s *Server) Collectors() []prometheus.Collector {
	return append(s.metrics.all(), proxyCollector{s}, s.figures)
}

// Sums are what the proxies that report to this server have counted, as they are kept.
func (s *Server) Sums() *figures.Sums { return s.figures }

// Figures are what the proxies that report to this server have counted.
func (s *Server) Figures() figures.Report { return s.figures.Report() }

// gateway returns a Gateway's record; s.mu is held.
func (s *Server) gateway(name object.Name) *gateway {
	g := s.gateways[name]
	if g == nil {
		g = newGateway(s, name)
		s.gateways[name] = g
	}
	return g
}

// state returns the present state of a Gateway.
func (s *Server) state(gateway object.Name) State {
	all := s.recordsOf(gateway)
	states := make([]State, len(all))
	for i, g := range all {
		g.mu.Lock()
		states[i] = g.state()
		g.mu.Unlock()
	}
	switch len(states) {
	case 0:
		return State{}
	case 1:
		return states[0]
	}
	out := MergeStates(states...)
	out.Refusing = refusing(all)
	return out
}

// enter returns the record of a Gateway's proxies of a revision, and keeps it until leave.
func (s *Server) enter(name object.Name, revision string) *gateway {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.ofRevision(name, revision)
	g.users++
	return g
}

func (s *Server) leave(g *gateway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.users--
	g.left = time.Now()
	if g.revision != "" {
		time.AfterFunc(keepRevision+time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dropRevisions(g.name, time.Now())
		})
	}
	// A record without an Update exists for the proxies alone.
	if !s.isUsed(g.name) && (g.isGone() || !g.isLoaded()) {
		delete(s.gateways, g.name)
		if g.isGone() {
			s.figures.Forget(g.name)
		}
	}
}

func (s *Server) nextID() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastID++
	return s.lastID
}
