package main

import (
	"bytes"
	"context"
	"errors"
)

// The files of oneFile.
const (
	routesFile   = "routes.yaml"
	backendsFile = "backends.yaml"
)

// oneFile measures the edit of a route in a file that has all of them, as generators write it.
func (b *real) oneFile(ctx context.Context, routes int) error {
	return b.within(ctx, routes, func(ctx context.Context, s *standalone, entries []entry) error {
		w := &workload{real: b, standalone: s, routes: routes, entries: entries}
		err := errors.Join(
			s.stage(backendsFile, joined(entries, entry.backendManifest)), s.place(backendsFile),
			s.stage(routesFile, joined(entries, entry.routeManifest)), s.place(routesFile),
			s.start(),
		)
		if err != nil {
			return err
		}
		if err := b.sweep(ctx, s, entries); err != nil {
			return err
		}
		if err := s.ready(ctx); err != nil {
			return err
		}
		return errors.Join(w.measure(ctx, w.fileEdits()), s.alive())
	})
}

// joined are the manifests of entries in one file.
func joined(entries []entry, manifest func(entry) []byte) []byte {
	parts := make([][]byte, len(entries))
	for i, e := range entries {
		parts[i] = manifest(e)
	}
	return bytes.Join(parts, []byte("---\n"))
}

// fileEdits are edits, of which each replaces the one file. What is measured begins with its
// rename.
func (w *workload) fileEdits() *changes {
	i := 0
	return &changes{shape: fileEdit, count: w.changes, next: func() (*change, error) {
		i++
		e := w.pick(i)
		right := e.edit()
		place := func() error { return w.place(routesFile) }
		return shown(e.request(), place, right, ok), w.stage(routesFile, joined(w.entries, entry.routeManifest))
	}}
}
