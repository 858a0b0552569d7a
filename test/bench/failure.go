package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// controlPlaneKilled kills the control plane and starts it again, under load.
func (w *workload) controlPlaneKilled(ctx context.Context) error {
	envoy, err := w.envoyPID()
	if err != nil {
		return err
	}
	var asked, failed [2]int64
	load, stop := context.WithCancel(ctx)
	defer stop()
	group, load := errgroup.WithContext(load)
	for i := range asked {
		group.Go(func() error {
			asked[i], failed[i] = w.look(load)
			return nil
		})
	}
	took, err := w.restart(ctx)
	if err != nil {
		return err
	}
	sent, err := w.sent(ctx)
	if err != nil {
		return err
	}
	if err := w.leads(ctx, sent); err != nil {
		return err
	}
	stop()
	if err := group.Wait(); err != nil {
		return err
	}
	w.add(controlPlaneKilled, "seconds", took.Seconds())
	w.add(controlPlaneKilled, "requests", float64(asked[0]+asked[1]))
	w.add(controlPlaneKilled, "failed_requests", float64(failed[0]+failed[1]))
	w.add(controlPlaneKilled, "sent_bytes", sent)
	now, err := w.envoyPID()
	if err != nil {
		return err
	}
	restarts := 0.0
	if now != envoy {
		restarts = 1
	}
	w.add(controlPlaneKilled, "envoy_restarts", restarts)
	return nil
}

// restart kills the control plane, starts it again and waits until Envoy is connected and
// has been told what the new one has to tell. It returns how long the start took.
func (w *workload) restart(ctx context.Context) (time.Duration, error) {
	const (
		alone = time.Second // how long Envoy serves without a control plane
		quiet = time.Second // how long what the new one sends is watched
	)
	if err := w.kill(); err != nil {
		return 0, err
	}
	if !wait(ctx, alone) {
		return 0, ctx.Err()
	}
	began := time.Now()
	if err := w.start(); err != nil {
		return 0, err
	}
	if err := w.ready(ctx); err != nil {
		return 0, err
	}
	took := time.Since(began)
	connected := func() (bool, error) {
		m, err := w.metrics(ctx)
		return m["gatehouse_xds_sessions"] == 1, errors.Join(err, w.alive())
	}
	if err := until(ctx, "Envoy to connect again", time.Minute, tick, connected); err != nil {
		return 0, err
	}
	if !wait(ctx, quiet) {
		return 0, ctx.Err()
	}
	return took, nil
}

// leads makes a change and waits until it is in force. That shows that the new process
// leads, and that its bytes are counted: before, it had sent this many.
func (w *workload) leads(ctx context.Context, sent float64) error {
	edit, err := w.edits().next()
	if err != nil {
		return err
	}
	if err := edit.make(); err != nil {
		return err
	}
	if err := w.inForce(ctx, edit); err != nil {
		return err
	}
	after, err := w.sent(ctx)
	if err != nil {
		return err
	}
	if after <= sent {
		return fmt.Errorf("a change is in force, and %s has not moved from %v", sentBytes, sent)
	}
	return nil
}

// inForce waits for a change that was made.
func (w *workload) inForce(ctx context.Context, c *change) error {
	probe := clientOf(w.address())
	defer probe.Close()
	return until(ctx, "a change of "+c.asks[0].Host, changeLimit, time.Millisecond, func() (bool, error) {
		for _, q := range c.asks {
			if a, err := probe.send(q.Request); err != nil || !q.right(a) {
				return false, errors.Join(err, w.alive())
			}
		}
		return true, nil
	})
}

// envoyKilled kills Envoy and waits for the next one to serve.
func (w *workload) envoyKilled(ctx context.Context) error {
	before, err := w.usage()
	if err != nil {
		return err
	}
	envoy, err := w.envoyPID()
	if err != nil {
		return err
	}
	if err := syscall.Kill(envoy, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill Envoy: %w", err)
	}
	began := time.Now()
	last := w.entries[len(w.entries)-1:]
	if err := w.sweep(ctx, w.standalone, last); err != nil {
		return err
	}
	w.add(envoyKilled, "seconds", time.Since(began).Seconds())
	used, err := w.usage() // of the new Envoy, which has begun with nothing
	if err != nil {
		return err
	}
	w.add(envoyKilled, "envoy_cpu_ms", milliseconds(used.envoy))
	w.add(envoyKilled, "process_cpu_ms", milliseconds(used.process-before.process))
	if err := w.sweep(ctx, w.standalone, w.entries); err != nil {
		return err
	}
	w.add(envoyKilled, "all_routes_seconds", time.Since(began).Seconds())
	return nil
}
