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
)

// sentBytes is the control plane's count of what it has sent to proxies.
const sentBytes = "gatehouse_xds_pushed_bytes_total"

// changes is one shape's stream of changes to files.
type changes struct {
	shape string
	count int // whose latency is measured
	// next makes a change and returns the host that shows it.
	next func() (*change, error)
}

// change is one change, with how to tell that it is in force.
type change struct {
	host string
	make func() error
	// right says whether an answer is what the change is to bring about, and
	// whether it is one that may be seen until then.
	right, legal func(answer) bool
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

// pick returns one of the entries, such that neighbours in time are not
// neighbours in order.
func (w *workload) pick(i int) *entry { return &w.entries[i*7919%len(w.entries)] }

// edits changes the header that a route adds to answers.
func (w *workload) edits() *changes {
	i := 0
	return &changes{shape: routeEdit, count: w.changes, next: func() (*change, error) {
		i++
		e := w.pick(i)
		e.version++
		want := strconv.Itoa(e.version)
		return &change{
			host: e.host(), make: func() error { return w.put(*e) }, legal: ok,
			right: func(a answer) bool { return ok(a) && a.version == want },
		}, nil
	}}
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
		return &change{
			host: e.host(), make: func() error { return w.put(*e) }, legal: ok,
			right: func(a answer) bool { return ok(a) && a.backend == to.name },
		}, nil
	}}
}

// additions brings new routes, each with a Service that nobody has seen before.
func (w *workload) additions() *changes {
	const count = 300 // a rare wrong answer shows in many additions only
	return &changes{shape: routeAdd, count: count, next: func() (*change, error) {
		i := w.routes + len(w.added)
		e := entry{index: i, port: w.backends[0].port(i)}
		w.added = append(w.added, e)
		return &change{
			host: e.host(), make: func() error { return w.put(e) }, right: ok,
			legal: func(a answer) bool { return ok(a) || a.status == http.StatusNotFound },
		}, nil
	}}
}

// deletions takes back what additions brought.
func (w *workload) deletions() *changes {
	return &changes{shape: routeDelete, count: w.changes, next: func() (*change, error) {
		if len(w.added) == 0 {
			return nil, errors.New("nothing is left to delete")
		}
		e := w.added[len(w.added)-1]
		w.added = w.added[:len(w.added)-1]
		return &change{
			host: e.host(), make: func() error { return w.remove(e) },
			right: func(a answer) bool { return a.status == http.StatusNotFound },
			legal: func(a answer) bool { return ok(a) || a.status == http.StatusNotFound },
		}, nil
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

// latencies measures from the rename to the first right answer, and counts wrong
// answers: of a tight client on the changed host, up to some time after, and of
// one on the other hosts.
func (w *workload) latencies(ctx context.Context, c *changes) error {
	const after = 20 // requests, in which a change in force must stay so
	var wrong, asked atomic.Int64
	around, stop := context.WithCancel(ctx)
	defer stop()
	group, around := errgroup.WithContext(around)
	group.Go(func() error {
		n, bad := w.look(around)
		asked.Add(n)
		wrong.Add(bad)
		return nil
	})

	probe := &client{address: w.address()}
	defer probe.close()
	latencies := make([]time.Duration, 0, c.count)
	request := func(host string, allowed func(answer) bool) answer {
		a, err := probe.get(host)
		asked.Add(1)
		if err != nil || !allowed(a) {
			wrong.Add(1)
			w.log.Debug("wrong answer", "host", host, "status", a.status, "error", err)
		}
		return a
	}
	for range c.count {
		change, err := c.next()
		if err != nil {
			return err
		}
		request(change.host, change.legal)
		began := time.Now()
		if err := change.make(); err != nil {
			return err
		}
		for !change.right(request(change.host, change.legal)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if time.Since(began) > changeLimit {
				return fmt.Errorf("a change of %s is not in force after %s", change.host, changeLimit)
			}
		}
		latencies = append(latencies, time.Since(began))
		for range after {
			request(change.host, change.right)
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
	const pause = time.Millisecond
	c := &client{address: w.address()}
	defer c.close()
	hosts := make([]string, len(w.entries)) // the entries themselves are being changed
	for i, e := range w.entries {
		hosts[i] = e.host()
	}
	for wait(ctx, pause) {
		host := hosts[int(asked)%len(hosts)]
		asked++
		if a, err := c.get(host); err != nil || !ok(a) {
			wrong++
			w.log.Debug("wrong answer of a bystander", "host", host, "status", a.status, "error", err)
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
	probe := &client{address: w.address()}
	defer probe.close()
	host := w.entries[0].host()
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
			_, err := probe.get(host)
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
				a, err := probe.get(change.host)
				if err != nil {
					return err
				}
				requests++
				done = change.right(a)
				if time.Since(began) > changeLimit {
					return fmt.Errorf("a change of %s is not in force after %s", change.host, changeLimit)
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
