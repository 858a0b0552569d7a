package ratelimit

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/ratelimit/descriptor"
)

const (
	// An outage is over once the store answers and has not failed for so long: one that answers
	// now and then is a single outage, and not a line for each failure.
	outageQuiet = 2 * time.Second
	// How often a store is tried that has not answered yet.
	reachInterval = 500 * time.Millisecond
)

// outage is the time in which a store fails. Its beginning and its end are told, once each.
type outage struct {
	log     *slog.Logger
	gateway object.Name
	on      atomic.Bool

	mu          sync.Mutex
	since, last time.Time
	failed      int
}

// fails takes note that the store has failed.
func (o *outage) fails(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = time.Now()
	o.failed++
	if o.on.Swap(true) {
		return
	}
	o.since, o.failed = o.last, 1
	o.log.Error("Requests can't be counted. Until they can, limits with onFailure Deny answer them with 503, and all others let them pass",
		"gateway", o.gateway, "error", err)
}

// answers takes note that the store has answered.
func (o *outage) answers() {
	if !o.on.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.last) < outageQuiet || !o.on.Swap(false) {
		return
	}
	o.log.Info("Requests are counted again", "gateway", o.gateway, "failed", o.failed, "outage", o.last.Sub(o.since).Round(time.Millisecond).String())
}

// collector tells of the outage.
func (o *outage) collector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatehouse_limits_failing", ConstLabels: prometheus.Labels{"gateway": o.gateway.String()},
		Help: "1 while requests can't be counted because the store fails, else 0.",
	}, func() float64 {
		if o.on.Load() {
			return 1
		}
		return 0
	})
}

// Reach returns once the store has answered: it is there, and lets us count. It is tried until
// then, and the error is the context's.
func (s *Server) Reach(ctx context.Context) error {
	look := []Hit{{Rate: descriptor.Rate{Limit: 1, Window: time.Second}}} // which keeps nothing
	for {
		_, err := s.store.Take(ctx, look, make([]Verdict, 1))
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.outage.fails(err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(reachInterval):
		}
	}
}
