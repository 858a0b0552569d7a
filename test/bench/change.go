package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-dev/gatehouse/test/visit"
)

// sentBytes is the control plane's count of what it has sent to proxies.
const sentBytes = "gatehouse_xds_pushed_bytes_total"

// changes is one shape's stream of changes to files.
type changes struct {
	shape string
	count int           // whose latency is measured
	every time.Duration // from one to the next at the least, under requests; 0 if it does not matter
	// next makes a change and returns what shows it.
	next func() (*change, error)
	// beside is one more client meanwhile; may be nil.
	beside func(context.Context) (asked, wrong int64)
}

// change is one change, with how to tell that it is in force: when every ask has
// the right answer.
type change struct {
	make func() error
	asks []ask
}

// ask is a request and its answers.
type ask struct {
	visit.Request
	// right says whether an answer is what a change is to bring about, and legal
	// whether it is one that may be seen until then.
	right, legal func(answer) bool
}

// shown is a change that one request shows.
func shown(by visit.Request, make func() error, right, legal func(answer) bool) *change {
	return &change{make: make, asks: []ask{{by, right, legal}}}
}

const (
	// costed is the number of changes whose CPU is measured.
	costed = 30
	// tick is the time between two requests while CPU is measured.
	tick = 25 * time.Millisecond
	// changeLimit is when a change is given up as lost.
	changeLimit = 30 * time.Second
)

func ok(a answer) bool { return a.status == http.StatusOK }

func missing(a answer) bool { return a.status == http.StatusNotFound }

func okOrMissing(a answer) bool { return ok(a) || missing(a) }

// pick returns one of the entries, such that neighbours in time are not
// neighbours in order.
func (w *workload) pick(i int) *entry { return &w.entries[i*7919%len(w.entries)] }

// edits changes the header that a route adds to answers.
func (w *workload) edits() *changes {
	i := 0
	return &changes{shape: routeEdit, count: w.changes, next: func() (*change, error) {
		i++
		e := w.pick(i)
		right := e.edit()
		place := func() error { return w.place(e.fileName()) }
		return shown(e.request(), place, right, ok), w.stage(e.fileName(), e.manifest())
	}}
}

// edit gives a route another version, and returns which answers have it.
func (e *entry) edit() (right func(answer) bool) {
	e.version++
	want := strconv.Itoa(e.version)
	return func(a answer) bool { return ok(a) && a.version == want }
}

// endpointChanges moves a Service from one backend to the other.
func (w *workload) endpointChanges() *changes {
	i := 0
	return &changes{shape: endpointChange, count: w.changes, next: func() (*change, error) {
		i++
		e := w.pick(i)
		to := w.backends[0]
		if e.port == to.port(e.index) {
			to = w.backends[1]
		}
		e.port = to.port(e.index)
		right := func(a answer) bool { return ok(a) && a.backend == to.name }
		return shown(e.request(), func() error { return w.put(*e) }, right, ok), nil
	}}
}

// additions brings new routes, each with a Service that nobody has seen before.
func (w *workload) additions() *changes {
	const count = 300 // a rare wrong answer shows in many additions only
	return &changes{shape: routeAdd, count: count, next: func() (*change, error) {
		i := w.routes + len(w.added)
		e := entry{index: i, port: w.backends[0].port(i)}
		w.added = append(w.added, e)
		return w.addition(e), nil
	}}
}

func (w *workload) addition(e entry) *change {
	return shown(e.request(), func() error { return w.put(e) }, ok, okOrMissing)
}

func (w *workload) deletion(e entry) *change {
	return shown(e.request(), func() error { return w.remove(e) }, missing, okOrMissing)
}

// deletions takes back what additions brought.
func (w *workload) deletions() *changes {
	return &changes{shape: routeDelete, count: w.changes, next: func() (*change, error) {
		if len(w.added) == 0 {
			return nil, errors.New("nothing is left to delete")
		}
		e := w.added[len(w.added)-1]
		w.added = w.added[:len(w.added)-1]
		return w.deletion(e), nil
	}}
}

// measure makes the changes twice: under tight clients for what they see, then
// under one slow client for what a change costs.
func (w *workload) measure(ctx context.Context, c *changes) error {
	listeners, err := w.listenerUpdates(ctx)
	if err != nil {
		return err
	}
	if err := w.latencies(ctx, c); err != nil {
		return err
	}
	if err := w.costs(ctx, c); err != nil {
		return err
	}
	now, err := w.listenerUpdates(ctx)
	if err != nil {
		return err
	}
	w.add(c.shape, "listener_updates", float64(now-listeners))
	return nil
}

// latencies measures from the rename to the first right answers, and counts wrong
// answers: of a tight client with the requests that show the change, up to some
// time after, and of one on the other hosts.
func (w *workload) latencies(ctx context.Context, c *changes) error {
	const after = 20 // requests, in which a change in force must stay so
	var wrong, asked atomic.Int64
	around, stop := context.WithCancel(ctx)
	defer stop()
	group, around := errgroup.WithContext(around)
	for _, other := range []func(context.Context) (asked, wrong int64){w.look, c.beside} {
		if other == nil {
			continue
		}
		group.Go(func() error {
			n, bad := other(around)
			asked.Add(n)
			wrong.Add(bad)
			return nil
		})
	}

	probe := clientOf(w.address())
	defer probe.Close()
	latencies := make([]time.Duration, 0, c.count)
	// get sends a request and reports whether the answer is the right one.
	get := func(q ask, allowed func(answer) bool) bool {
		a, err := probe.send(q.Request)
		asked.Add(1)
		if err != nil || !allowed(a) {
			wrong.Add(1)
			w.log.Debug("wrong answer", "host", q.Host, "path", q.Path, "header", q.Header, "status", a.status,
				"version", a.version, "backend", a.backend, "error", err)
		}
		return err == nil && q.right(a)
	}
	for range c.count {
		change, err := c.next()
		if err != nil {
			return err
		}
		for _, q := range change.asks {
			get(q, q.legal)
		}
		began := time.Now()
		if err := change.make(); err != nil {
			return err
		}
		for left := len(change.asks); left > 0; {
			left = len(change.asks)
			for i, q := range change.asks {
				if get(q, q.legal) {
					change.asks[i].legal = q.right // and never again the old one
					left--
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if left > 0 && time.Since(began) > changeLimit {
				return fmt.Errorf("a change of %s is not in force after %s", change.asks[0].Host, changeLimit)
			}
		}
		latencies = append(latencies, time.Since(began))
		for n := 0; n < after || time.Since(began) < c.every; n++ {
			for _, q := range change.asks {
				get(q, q.right)
			}
		}
	}
	stop()
	if err := group.Wait(); err != nil {
		return err
	}
	latencies = sorted(latencies)
	w.add(c.shape, "latency_p50_ms", milliseconds(percentile(latencies, .5)))
	w.add(c.shape, "latency_p99_ms", milliseconds(percentile(latencies, .99)))
	w.add(c.shape, "wrong_answers", float64(wrong.Load()))
	w.add(c.shape, "requests", float64(asked.Load()))
	return nil
}

// look asks the hosts that exist from the start, one after another, until ctx
// ends. They serve all the time, whatever is changed beside or in them.
func (w *workload) look(ctx context.Context) (asked, wrong int64) {
	requests := make([]visit.Request, len(w.entries)) // the entries themselves are being changed
	for i, e := range w.entries {
		requests[i] = e.request()
	}
	n := -1
	return w.lookAt(ctx, func() ask {
		n++
		return ask{Request: requests[n%len(requests)], legal: ok}
	})
}

// lookAt sends one request after another, until ctx ends, and counts the answers
// that are not legal.
func (w *workload) lookAt(ctx context.Context, next func() ask) (asked, wrong int64) {
	const pause = time.Millisecond
	c := clientOf(w.address())
	defer c.Close()
	for wait(ctx, pause) {
		q := next()
		asked++
		if a, err := c.send(q.Request); err != nil || !q.legal(a) {
			wrong++
			w.log.Debug("wrong answer of a bystander", "host", q.Host, "status", a.status, "error", err)
		}
	}
	return asked, wrong
}

// usage is the CPU that the two processes have used so far.
type usage struct{ envoy, process time.Duration }

func (w *workload) usage() (u usage, err error) {
	envoy, err := w.envoyPID()
	if err != nil {
		return u, err
	}
	if u.envoy, err = processCPU(envoy); err != nil {
		return u, err
	}
	u.process, err = processCPU(w.pid())
	return u, err
}

// sent returns the bytes that the control plane has sent since it was started.
func (w *workload) sent(ctx context.Context) (float64, error) {
	m, err := w.metrics(ctx)
	return m[sentBytes], err
}

// costs measures CPU and bytes a change. A client that asks now and then tells
// when a change is in force; what its requests and mere idling cost is measured
// first, at the same pace, and taken off.
func (w *workload) costs(ctx context.Context, c *changes) error {
	// least is how many ticks a change gets: work that follows the first right
	// answer, such as taking the old configuration down, belongs to it.
	const calibration, least = 60, 6
	probe := clientOf(w.address())
	defer probe.Close()
	request := w.entries[0].request()
	sent, err := w.sent(ctx) // outside of what is timed: it costs CPU itself
	if err != nil {
		return err
	}
	idle, err := w.spent(func() error { return pace(ctx, calibration, func() error { return nil }) })
	if err != nil {
		return err
	}
	asking, err := w.spent(func() error {
		return pace(ctx, calibration, func() error {
			_, err := probe.send(request)
			return err
		})
	})
	if err != nil {
		return err
	}
	ticks, requests := 0, 0
	total, err := w.spent(func() error {
		for range costed {
			change, err := c.next()
			if err != nil {
				return err
			}
			if err := change.make(); err != nil {
				return err
			}
			began := time.Now()
			for n, done := 0, false; !done || n < least; n++ {
				if err := pace(ctx, 1, func() error { return nil }); err != nil {
					return err
				}
				ticks++
				if done {
					continue
				}
				q := change.asks[0]
				a, err := probe.send(q.Request)
				if err != nil {
					return err
				}
				requests++
				done = q.right(a)
				if time.Since(began) > changeLimit {
					return fmt.Errorf("a change of %s is not in force after %s", q.Host, changeLimit)
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	sentAfter, err := w.sent(ctx)
	if err != nil {
		return err
	}
	own := func(idle, asking, total time.Duration) float64 {
		perTick := float64(idle) / calibration
		perRequest := float64(asking)/calibration - perTick
		rest := perTick*float64(ticks) + perRequest*float64(requests)
		return max(0, float64(total)-rest) / costed / float64(time.Millisecond)
	}
	w.add(c.shape, "envoy_cpu_ms", own(idle.envoy, asking.envoy, total.envoy))
	w.add(c.shape, "process_cpu_ms", own(idle.process, asking.process, total.process))
	w.add(c.shape, "sent_bytes", (sentAfter-sent)/costed)
	return nil
}

// pace does something once a tick.
func pace(ctx context.Context, ticks int, do func() error) error {
	for range ticks {
		if !wait(ctx, tick) {
			return ctx.Err()
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// spent returns the CPU that the two processes use while work runs.
func (w *workload) spent(work func() error) (usage, error) {
	before, err := w.usage()
	if err != nil {
		return usage{}, err
	}
	if err := work(); err != nil {
		return usage{}, err
	}
	after, err := w.usage()
	return usage{after.envoy - before.envoy, after.process - before.process}, err
}
