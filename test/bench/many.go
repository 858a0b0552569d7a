package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// manyRoutesCount is with how many routes a directory is measured that is larger than any other.
const manyRoutesCount = 100_000

// manyServices is how many Services these routes lead to. What many clusters take of Envoy is measured
// with fewer routes.
const manyServices = 16

// largeDirectory measures a directory of so many routes, each with a host and a path of its own in a file
// of its own: the start, the first edit right after it, later ones, and the memory of the control plane.
func (b *real) largeDirectory(ctx context.Context) error {
	return b.within(ctx, manyRoutesCount, func(ctx context.Context, s *standalone, entries []entry) error {
		for _, x := range b.backends {
			x.keep(true) // few Services have few connections
		}
		for i := range manyServices {
			e := entry{index: i, port: b.backends[0].port(i)}
			file := filepath.Join(s.manifests(), "service-"+e.fileName())
			if err := os.WriteFile(file, e.backendManifest(), 0o600); err != nil {
				return err
			}
		}
		for i := range entries {
			entries[i].shares = true
			if err := s.put(entries[i]); err != nil {
				return err
			}
		}
		w := &workload{real: b, standalone: s, routes: len(entries), entries: entries}
		return errors.Join(w.manyRoutes(ctx), s.alive())
	})
}

func (w *workload) manyRoutes(ctx context.Context) error {
	began := time.Now()
	if err := w.start(); err != nil {
		return err
	}
	// Which route is the last one, nobody knows: routes become served in parts of which each has some of these.
	const every = 50
	var some []entry
	for i := 0; i < len(w.entries); i += every {
		some = append(some, w.entries[i])
	}
	if err := w.sweep(ctx, w.standalone, some); err != nil {
		return err
	}
	w.add(manyRoutes, "start_seconds", time.Since(began).Seconds())
	used, err := w.usage()
	if err != nil {
		return err
	}
	w.add(manyRoutes, "start_envoy_cpu_ms", milliseconds(used.envoy))
	w.add(manyRoutes, "start_process_cpu_ms", milliseconds(used.process))

	edits := w.edits()
	first, err := edits.next()
	if err != nil {
		return err
	}
	began = time.Now()
	if err := errors.Join(first.make(), w.inForce(ctx, first)); err != nil {
		return err
	}
	w.add(manyRoutes, "first_edit_ms", milliseconds(time.Since(began)))

	if err := w.allServed(ctx); err != nil {
		return err
	}
	edits.shape = manyRoutes
	if err := w.measure(ctx, edits); err != nil {
		return err
	}
	rss, err := processMemory(w.pid())
	if err != nil {
		return err
	}
	w.add(manyRoutes, "rss_mb", float64(rss)/1e6)
	if err := w.memory(manyRoutes, "envoy_rss_mb"); err != nil {
		return err
	}
	heap, err := w.heap(ctx)
	if err != nil {
		return err
	}
	w.add(manyRoutes, "heap_mb", heap/1e6)
	return w.writeProfiles(ctx, w.standalone, manyRoutes, w.routes)
}

// allServed asks for each route once: the start was over only if none was missing.
func (w *workload) allServed(ctx context.Context) error {
	c := clientOf(w.address())
	defer c.Close()
	for _, e := range w.entries {
		if a, err := c.send(e.request()); err != nil || !ok(a) {
			return errors.Join(fmt.Errorf("%s, which was to be served by now, is answered %d", e.host(), a.status), err, ctx.Err())
		}
	}
	return ctx.Err()
}
