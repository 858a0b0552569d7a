package fetch

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse/internal/keyset"
)

// Options configure a Fetcher.
type Options struct {
	Log *slog.Logger
	// Answer takes what is known of a set whenever that is something else than before. It is
	// called by one goroutine for each set, must not call the Fetcher, and returns when ctx
	// ends at the latest.
	Answer func(ctx context.Context, k keyset.Key, a keyset.Answer)
	// Refused are hosts, names or addresses, that no key may lead to, whatever its Reach
	// allows: those of the API server.
	Refused []string
	// StateDir is a private directory in which the sets are kept for the next process; empty
	// for none.
	StateDir string
	// Roots are the authorities of servers; nil is those of the system.
	Roots *x509.CertPool
	// Resolver resolves names; nil is that of the system.
	Resolver Resolver
}

// Resolver resolves the names of hosts.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// MaxSets is how many sets are fetched in all. Those that are wanted later are not.
const MaxSets = 1024

// Fetcher fetches the sets that are wanted.
type Fetcher struct {
	opts    Options
	pace    pace
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	metrics metrics

	ctx    context.Context // ends with Run
	cancel context.CancelFunc
	group  sync.WaitGroup
	news   chan struct{} // there is something to keep

	mu   sync.Mutex
	sets map[keyset.Key]*set
	kept map[keyset.Key]kept // of an earlier process
}

// set is a set that is wanted.
type set struct {
	cancel  context.CancelFunc
	good    kept // the last good one
	failing bool // the last attempt failed
}

// pace is when a set is fetched: again after so long, and after a failure.
type pace struct {
	whole       time.Duration // the longest that one attempt takes
	address     time.Duration // the longest that one address is waited for
	scale       float64       // of the ages that servers name
	first, last time.Duration // between attempts that fail
}

// usualPace is that of all but tests.
var usualPace = pace{whole: 5 * time.Second, address: 2 * time.Second, scale: 1, first: time.Second, last: 5 * time.Minute}

// New prepares a fetcher. It reads what an earlier process has kept.
func New(opts Options) *Fetcher {
	if opts.Resolver == nil {
		opts.Resolver = net.DefaultResolver
	}
	f := &Fetcher{
		opts: opts, pace: usualPace, dial: (&net.Dialer{}).DialContext, metrics: newMetrics(),
		news: make(chan struct{}, 1), sets: map[keyset.Key]*set{}, kept: map[keyset.Key]kept{},
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.restore()
	return f
}

// Collectors are the metrics.
func (f *Fetcher) Collectors() []prometheus.Collector {
	return []prometheus.Collector{f.metrics.attempts, stateCollector{f}}
}

// Run keeps sets fresh until ctx ends, and ends all that Want has begun.
func (f *Fetcher) Run(ctx context.Context) error {
	f.keep(ctx)
	f.mu.Lock()
	f.cancel() // nothing begins after it
	f.mu.Unlock()
	f.group.Wait()
	return ctx.Err()
}

// Want says which sets are wanted from now on. It returns what is known of those newly wanted,
// nil for those that no longer are, and the others that are newly wanted, of which the first
// attempt will tell something. It doesn't wait for anything.
func (f *Fetcher) Want(keys []keyset.Key) (known map[keyset.Key]*keyset.Answer, unknown []keyset.Key) {
	known = map[keyset.Key]*keyset.Answer{}
	wanted := make(map[keyset.Key]bool, len(keys))
	for _, k := range keys {
		wanted[k] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, s := range f.sets {
		if !wanted[k] {
			s.cancel()
			delete(f.sets, k)
			known[k] = nil
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(wanted), func(a, b keyset.Key) int { return strings.Compare(a.String(), b.String()) }) {
		if f.sets[k] != nil {
			continue
		}
		if f.ctx.Err() != nil {
			continue
		}
		if len(f.sets) >= MaxSets {
			known[k] = &keyset.Answer{Problem: fmt.Sprintf("%s: the keys of no more than %d issuers are fetched in all", keyset.Told(k.URL()), MaxSets)}
			continue
		}
		if s := f.begin(k); s.good.Keys != "" {
			known[k] = new(s.good.answer())
		} else {
			unknown = append(unknown, k)
		}
	}
	if len(known) > 0 {
		f.changed()
	}
	return known, unknown
}

// begin begins to follow a set. The caller holds the lock.
func (f *Fetcher) begin(k keyset.Key) *set {
	ctx, cancel := context.WithCancel(f.ctx) //nolint:gosec // Want calls it, and Run ends f.ctx
	s := &set{cancel: cancel, good: f.kept[k]}
	f.sets[k] = s
	delete(f.kept, k) // should it be wanted again later, it is too old
	f.group.Go(func() { f.follow(ctx, k, s) })
	return s
}

// follow fetches a set again and again until it is no longer wanted.
func (f *Fetcher) follow(ctx context.Context, k keyset.Key, s *set) {
	last := s.good.answer()
	told, failures := last.Keys != "", 0
	for {
		now, age := f.attempt(ctx, k, s)
		if ctx.Err() != nil {
			return
		}
		if now != last || !told {
			f.note(k, last, now)
			f.opts.Answer(ctx, k, now)
			last, told = now, true
		}
		var wait time.Duration
		if now.Problem == "" {
			failures, wait = 0, jittered(time.Duration(float64(age)*f.pace.scale))
		} else {
			failures++
			wait = jittered(f.backoff(failures))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// attempt fetches a set once, and returns what is known of it then, and for how long.
func (f *Fetcher) attempt(ctx context.Context, k keyset.Key, s *set) (keyset.Answer, time.Duration) {
	got, age, why := f.fetch(ctx, k)
	if ctx.Err() != nil {
		return keyset.Answer{}, 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.failing = why != ""; s.failing {
		f.metrics.attempts.WithLabelValues("failed").Inc()
		a := s.good.answer()
		if a.Problem = why; a.Keys != "" {
			a.Since = s.good.Fetched
		}
		return a, 0
	}
	f.metrics.attempts.WithLabelValues("ok").Inc()
	changed := s.good.fetched != got
	s.good = kept{Location: k.Location, Reach: k.Reach, fetched: got, Fetched: time.Now().UTC().Truncate(time.Second)}
	if f.sets[k] == s && changed {
		f.changed()
	}
	return s.good.answer(), age
}

// note logs that a set can't be fetched, or can be again.
func (f *Fetcher) note(k keyset.Key, last, now keyset.Answer) {
	switch {
	case now.Problem != "":
		f.opts.Log.Warn("the keys of an issuer can't be fetched; it is tried again", "url", keyset.Told(k.URL()), "problem", now.Problem, "others_stay", now.Keys != "")
	case last.Problem != "" || last.Keys != "" && last.Keys != now.Keys:
		f.opts.Log.Info("the keys of an issuer are fetched", "url", keyset.Told(k.URL()))
	}
}

// backoff is the time before the attempt that follows so many that failed.
func (f *Fetcher) backoff(failures int) time.Duration {
	if shift := failures - 1; shift < 16 {
		return min(f.pace.first<<shift, f.pace.last)
	}
	return f.pace.last
}

// jittered shortens a time by up to a tenth, so that the sets of one server are not all asked
// for at once, nor by all replicas.
func jittered(d time.Duration) time.Duration { return d - rand.N(d/10+1) }
