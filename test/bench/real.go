package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// real measures a running gatehouse with its Envoy, from files to answers.
type real struct {
	log         *slog.Logger
	report      *report
	binary      string
	shapes      []string // beside the start; all if empty
	concurrency int      // Envoy's worker threads
	changes     int      // of each shape
	profile     string   // directory for the control plane's profiles; empty for none

	backends [2]*backend
	// base is the control plane's heap with a single route: what every schema
	// compiled and every table declared take once.
	base float64
}

// sizeLimit bounds the time for one number of routes.
const sizeLimit = 30 * time.Minute

// setUp starts the backends and measures an almost empty control plane.
func (b *real) setUp(ctx context.Context) error {
	for i, name := range []string{"a", "b"} {
		var err error
		if b.backends[i], err = startBackend(ctx, name); err != nil {
			return err
		}
	}
	return b.with(ctx, 1, func(ctx context.Context, s *standalone, entries []entry) error {
		if err := s.start(); err != nil {
			return err
		}
		if err := b.sweep(ctx, s, entries); err != nil {
			return err
		}
		if err := s.ready(ctx); err != nil {
			return err
		}
		var err error
		b.base, err = s.heap(ctx)
		return err
	})
}

func (b *real) tearDown() {
	for _, x := range b.backends {
		if x != nil {
			x.stop()
		}
	}
}

// with runs fn with a directory of so many routes, each in a file, and cleans up after it.
func (b *real) with(ctx context.Context, routes int, fn func(context.Context, *standalone, []entry) error) error {
	return b.within(ctx, routes, func(ctx context.Context, s *standalone, entries []entry) error {
		for _, e := range entries {
			if err := s.put(e); err != nil {
				return err
			}
		}
		return fn(ctx, s, entries)
	})
}

// within runs fn with an empty directory and the entries to fill it, and cleans up after it.
func (b *real) within(ctx context.Context, routes int, fn func(context.Context, *standalone, []entry) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, sizeLimit)
	defer cancel()
	s, err := newStandalone(ctx, b.binary, b.concurrency)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for _, x := range b.backends {
		x.keep(b.connected(routes))
	}
	entries := make([]entry, routes)
	for i := range entries {
		entries[i] = entry{index: i, port: b.backends[0].port(i)}
	}
	return fn(ctx, s, entries)
}

// connected reports whether Envoy can keep a connection to the backend of every
// route on every worker, with some to spare for the routes to come.
func (b *real) connected(routes int) bool {
	const spare = 2000
	return roomFor(b.concurrency*routes + spare)
}

// run measures everything at one number of routes.
func (b *real) run(ctx context.Context, routes int) error {
	if err := b.directory(ctx, routes); err != nil {
		return err
	}
	if len(b.shapes) > 0 && !slices.Contains(b.shapes, fileEdit) {
		return nil
	}
	b.log.Info("with the real Envoy", "routes", routes, "shape", fileEdit)
	if err := b.oneFile(ctx, routes); err != nil {
		return fmt.Errorf("%s at %d routes: %w", fileEdit, routes, err)
	}
	return nil
}

// directory measures what changes files that have a route each.
func (b *real) directory(ctx context.Context, routes int) error {
	return b.with(ctx, routes, func(ctx context.Context, s *standalone, entries []entry) error {
		w := &workload{real: b, standalone: s, routes: routes, entries: entries}
		steps := []struct {
			shape string
			run   func(context.Context) error
		}{
			{coldStart, w.coldStart},
			{routeEdit, func(ctx context.Context) error { return w.measure(ctx, w.edits()) }},
			{endpointChange, func(ctx context.Context) error { return w.measure(ctx, w.endpointChanges()) }},
			{routeAdd, func(ctx context.Context) error { return w.measure(ctx, w.additions()) }},
			{routeDelete, func(ctx context.Context) error { return w.measure(ctx, w.deletions()) }},
			{addsAndRemovals, func(ctx context.Context) error { return w.latencies(ctx, w.additionsAndRemovals()) }},
			{toggle, func(ctx context.Context) error { return w.play(ctx, w.toggle()) }},
			{reorder, func(ctx context.Context) error { return w.play(ctx, w.reorder()) }},
			{insert, func(ctx context.Context) error { return w.play(ctx, w.insert()) }},
			{serviceSwap, func(ctx context.Context) error { return w.play(ctx, w.swap()) }},
			{unrelated, w.unrelatedRequests},
			{controlPlaneKilled, w.controlPlaneKilled},
			{envoyKilled, w.envoyKilled},
			{envoyAlone, w.envoyAlone},
		}
		for _, step := range steps {
			if step.shape != coldStart && len(b.shapes) > 0 && !slices.Contains(b.shapes, step.shape) {
				continue
			}
			b.log.Info("with the real Envoy", "routes", routes, "shape", step.shape)
			if err := step.run(ctx); err != nil {
				return fmt.Errorf("%s at %d routes: %w", step.shape, routes, errors.Join(err, s.alive()))
			}
			if step.shape == envoyAlone {
				continue // its control plane has ended, and can't be asked for profiles
			}
			if err := b.writeProfiles(ctx, s, step.shape, routes); err != nil {
				return fmt.Errorf("profiles of %s at %d routes: %w", step.shape, routes, err)
			}
		}
		return nil
	})
}

// workload is one running system with the routes that it was given.
type workload struct {
	*real
	*standalone
	routes  int
	entries []entry
	added   []entry // by additions, taken back by deletions
}

func (w *workload) add(shape, metric string, value float64) {
	w.report.add(shape, w.routes, metric, value)
}

// sweep waits until every route serves: four clients take turns over the hosts.
func (b *real) sweep(ctx context.Context, s *standalone, entries []entry) error {
	const (
		clients = 4
		limit   = 3 * time.Minute
		pause   = 2 * time.Millisecond
	)
	group, ctx := errgroup.WithContext(ctx)
	for part := range clients {
		group.Go(func() error {
			c := clientOf(s.address())
			defer c.Close()
			for i := part; i < len(entries); i += clients {
				request := entries[i].request()
				err := until(ctx, request.Host+" to serve", limit, pause, func() (bool, error) {
					a, err := c.send(request)
					return err == nil && a.status == 200, errors.Join(err, s.alive())
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (w *workload) coldStart(ctx context.Context) error {
	began := time.Now()
	if err := w.start(); err != nil {
		return err
	}
	if err := w.ready(ctx); err != nil {
		return err
	}
	// Before any traffic: what the configuration alone takes.
	if err := w.memory(coldStart, "envoy_rss_mb"); err != nil {
		return err
	}
	if err := w.sweep(ctx, w.standalone, w.entries); err != nil {
		return err
	}
	w.add(coldStart, "seconds", time.Since(began).Seconds())
	if w.connected(w.routes) { // now Envoy also holds a connection for every route
		if err := w.memory(coldStart, "envoy_rss_connected_mb"); err != nil {
			return err
		}
	}
	used, err := w.usage()
	if err != nil {
		return err
	}
	w.add(coldStart, "envoy_cpu_ms", milliseconds(used.envoy))
	w.add(coldStart, "process_cpu_ms", milliseconds(used.process))
	sent, err := w.sent(ctx)
	if err != nil {
		return err
	}
	w.add(coldStart, "sent_bytes", sent)
	rss, err := processMemory(w.pid())
	if err != nil {
		return err
	}
	w.add(coldStart, "rss_mb", float64(rss)/1e6)
	heap, err := w.heap(ctx)
	if err != nil {
		return err
	}
	w.add(coldStart, "heap_mb", heap/1e6)
	w.add(coldStart, "heap_kib_per_route", (heap-w.base)/1024/float64(max(w.routes-1, 1)))
	return nil
}

// memory reports Envoy's resident set.
func (w *workload) memory(shape, metric string) error {
	pid, err := w.envoyPID()
	if err != nil {
		return err
	}
	rss, err := processMemory(pid)
	if err != nil {
		return err
	}
	w.add(shape, metric, float64(rss)/1e6)
	return nil
}

// percentile returns the value that a share of the sorted values does not exceed.
func percentile(sorted []time.Duration, share float64) time.Duration {
	at := int(share*float64(len(sorted))+0.9999) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

func sorted(d []time.Duration) []time.Duration {
	slices.Sort(d)
	return d
}

// writeProfiles keeps the control plane's heap and allocations as they are after
// a shape.
func (b *real) writeProfiles(ctx context.Context, s *standalone, shape string, routes int) error {
	if b.profile == "" {
		return nil
	}
	for _, kind := range []string{"heap?gc=1", "allocs"} {
		text, err := s.admin(ctx, "/debug/pprof/"+kind)
		if err != nil {
			return err
		}
		name, _, _ := strings.Cut(kind, "?")
		file := filepath.Join(b.profile, fmt.Sprintf("process-%s-%d.%s.pprof", shape, routes, name))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
