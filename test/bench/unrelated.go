package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// The turns of unrelated: as many with edits as without, one after the other,
// because the machine is not always as fast.
const (
	unrelatedTurns = 16
	unrelatedTurn  = 500 * time.Millisecond
	unrelatedEvery = 100 * time.Millisecond // from one edit to the next
	unrelatedHosts = 16                     // at most; they are not edited
)

// unrelatedRequests measures what edits of routes cost the requests to others.
func (w *workload) unrelatedRequests(ctx context.Context) error {
	for _, b := range w.backends { // few hosts are asked, whatever the number of routes
		b.keep(true)
		defer b.keep(w.connected(w.routes))
	}
	hosts := min(unrelatedHosts, len(w.entries)/2)
	asked, edited := w.entries[:hosts], *w
	edited.entries = w.entries[hosts:]
	edits := edited.edits()

	c := clientOf(w.address())
	defer c.Close()
	n, wrong := 0, 0
	// turn asks for some time and returns how long each answer took.
	turn := func() (took []time.Duration) {
		for began := time.Now(); time.Since(began) < unrelatedTurn && ctx.Err() == nil; n++ {
			host, begin := asked[n%len(asked)].host(), time.Now()
			a, err := c.get(host)
			took = append(took, time.Since(begin))
			if err != nil || !ok(a) {
				wrong++
				w.log.Debug("wrong answer of an unrelated route", "host", host, "status", a.status, "error", err)
			}
		}
		return took
	}
	turn() // the first ones find caches cold
	var quiet, flowing []time.Duration
	for range unrelatedTurns {
		quiet = append(quiet, turn()...)
		if err := edited.flow(ctx, edits, func() { flowing = append(flowing, turn()...) }); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	quiet, flowing = sorted(quiet), sorted(flowing)
	for _, p := range []struct {
		name  string
		share float64
	}{{"p50", .5}, {"p99", .99}, {"p999", .999}} {
		with, without := percentile(flowing, p.share), percentile(quiet, p.share)
		w.add(unrelated, p.name+"_ms", milliseconds(with))
		w.add(unrelated, "quiet_"+p.name+"_ms", milliseconds(without))
		w.add(unrelated, p.name+"_over_quiet", float64(with)/float64(without))
	}
	w.add(unrelated, "wrong_answers", float64(wrong))
	w.add(unrelated, "requests", float64(n))
	return nil
}

// flow makes changes at a steady pace while work runs, and waits until the last one
// is in force. All of them are prepared before: whoever edits routes doesn't do it on the
// cores of a proxy.
func (w *workload) flow(ctx context.Context, c *changes, work func()) error {
	prepared := make([]*change, unrelatedTurn/unrelatedEvery)
	for i := range prepared {
		var err error
		if prepared[i], err = c.next(); err != nil {
			return err
		}
	}
	around, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	var last *change
	group.Go(func() error {
		for _, next := range prepared {
			if !wait(around, unrelatedEvery) {
				break
			}
			if err := next.make(); err != nil {
				return err
			}
			last = next
		}
		return nil
	})
	work()
	stop()
	if err := group.Wait(); err != nil {
		return err
	}
	if last == nil {
		return fmt.Errorf("no change was made in %s", unrelatedTurn)
	}
	return w.inForce(ctx, last)
}
