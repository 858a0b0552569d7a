package ratelimit

import (
	"context"
	"errors"
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
	// How often a store is asked beside requests.
	lookInterval = 500 * time.Millisecond
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

// errUnasked is why nobody counts before the store has been asked.
var errUnasked = errors.New("the store of counts has not been asked yet")

// Follow asks the store again and again, until ctx ends, for a count that nothing is kept of. An
// outage begins and ends by it too, since while it lasts requests may come to nobody.
func (s *Server) Follow(ctx context.Context) {
	look := []Hit{{Rate: descriptor.Rate{Limit: 1, Window: time.Second}}}
	for {
		_, err := s.store.Take(ctx, look, make([]Verdict, 1))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.outage.fails(err)
		} else {
			s.outage.answers()
		}
		s.last.Store(&err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookInterval):
		}
	}
}

// Counts returns why the store has not answered Follow last; nil if it has.
func (s *Server) Counts() error {
	if last := s.last.Load(); last != nil {
		return *last
	}
	return errUnasked
}
