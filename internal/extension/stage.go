package extension

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Config is what a Stage needs.
type Config struct {
	// Extensions are asked in this order, each about what those before it have made.
	Extensions []Options
	// Apply takes what proxies are to have, as the xDS server does.
	Apply func([]xds.Update)
	// Tell is told, when that changes, what has no usable answer of a Gateway's resources; nil for a Gateway that is gone. It
	// may wait.
	Tell func(ctx context.Context, gateway object.Name, wrong []string)
	Log  *slog.Logger
}

// Stage has extension servers change what updates bring.
type Stage struct {
	config  Config
	clients []*client
	metrics *metrics
	running context.Context
	stop    context.CancelFunc
	// generation counts when a server may answer otherwise than before.
	generation atomic.Uint64

	mu       sync.Mutex
	gateways map[object.Name]*gateway
}

// New prepares a stage.
func New(c Config) (*Stage, error) {
	s := &Stage{config: c, metrics: newMetrics(c.Extensions), gateways: map[object.Name]*gateway{}}
	s.running, s.stop = context.WithCancel(context.Background())
	for _, o := range c.Extensions {
		one, err := newClient(o, c.Log, s.metrics, s.askAnew, s.askAgain)
		if err != nil {
			s.stop()
			return nil, err
		}
		s.clients = append(s.clients, one)
	}
	return s, nil
}

// Run keeps connections until ctx ends. Nothing is handed on after that.
func (s *Stage) Run(ctx context.Context) error {
	defer s.stop()
	var group errgroup.Group
	for _, c := range s.clients {
		group.Go(func() error { c.run(ctx); return nil })
	}
	_ = group.Wait()
	return ctx.Err()
}

// Collectors are its metrics; none of no stage.
func (s *Stage) Collectors() []prometheus.Collector {
	if s == nil {
		return nil
	}
	return s.metrics.all()
}

// Apply hands on updates once servers have been asked about them. It waits for nobody.
func (s *Stage) Apply(updates []xds.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, updates := range xds.ByGateway(updates) {
		g := s.gateways[name]
		if g == nil {
			g = newGateway(s, name)
			s.gateways[name] = g
		}
		g.take(slices.Clone(updates))
	}
}

// drop forgets a Gateway that is gone, unless one of its name has come.
func (s *Stage) drop(g *gateway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pending) == 0 && s.gateways[g.name] == g {
		delete(s.gateways, g.name)
	}
}

// askAnew has servers asked about all there is: one may answer otherwise than before.
func (s *Stage) askAnew() {
	s.generation.Add(1)
	s.askAgain()
}

// askAgain has servers asked about what they have said nothing of.
func (s *Stage) askAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.gateways {
		g.askAnew()
	}
}

// longestCall is the longest timeout of a server.
func (s *Stage) longestCall() (out time.Duration) {
	for _, c := range s.clients {
		out = max(out, c.timeout())
	}
	return out
}

// asked reports whether a server is asked about a hook.
func (s *Stage) asked(h Hook) bool {
	return h != "" && slices.ContainsFunc(s.clients, func(c *client) bool { return slices.Contains(c.Hooks, h) })
}
