package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// notifier reports changes of files. Where there is none, such as on a system that has no
// inotify instances left, the source polls.
type notifier = *fsnotify.Watcher

func newNotifier() (notifier, error) { return fsnotify.NewBufferedWatcher(1024) }

// watches keeps the notifier's list in line with the last walk.
type watches struct {
	fs     notifier
	wanted map[string]bool            // directories of this walk
	marks  map[string]mark            // of those of the last one
	names  map[string]map[string]bool // single names that matter, by directory
	whole  map[string]bool            // directories of which everything matters
	ends   *completions               // nil where the system doesn't tell
	err    error                      // the first failure: the caller polls from then on
}

// begin forgets directories that have another path now, or none: the notifier would go on to tell of them by the
// path that it knows.
func (w *watches) begin() {
	for path, was := range w.marks {
		if markOf(path) != was {
			_ = w.fs.Remove(path) // gone already, as a rule
		}
	}
	w.marks = map[string]mark{}
	w.wanted, w.names, w.whole = map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}
}

func (w *watches) end() {
	for _, path := range w.fs.WatchList() {
		if !w.wanted[path] {
			_ = w.fs.Remove(path) // gone already, as a rule
		}
	}
	w.ends.keep(w.wanted)
}

func (w *watches) dir(path string) {
	w.whole[path] = true
	w.add(path)
}

func (w *watches) name(dir, base string) {
	if w.names[dir] == nil {
		w.names[dir] = map[string]bool{}
	}
	w.names[dir][base] = true
	w.add(dir)
}

// add watches a directory. A directory that is watched already is added again, because
// it may be another one of the same name.
func (w *watches) add(path string) {
	if w.wanted[path] {
		return
	}
	w.wanted[path] = true
	w.ends.add(path)
	err := w.fs.Add(path)
	w.marks[path] = markOf(path)
	if err != nil && w.err == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.ENOTDIR) {
		w.err = fmt.Errorf("watch %s: %w", path, err)
	}
}

// Run reads everything and calls apply with it, empty or not, then with each
// difference, until ctx ends; then it returns nil, and before that only an error of Options.Strict
// or of reading. apply is called from this
// goroutine, one batch at a time; while it runs, changes gather.
func (s *Source) Run(ctx context.Context, apply func(source.Batch)) error {
	if slices.Contains(s.paths, stdinName) && !s.awaitStdin(ctx) {
		return nil
	}
	r := &runner{state: newState(s), dirty: map[string]bool{}, known: newCompleteness(), strict: s.strict}
	defer r.close()
	if k := openKeeper(s.stateDir, s.log); k != nil {
		defer k.close()
		r.keep(k)
		r.strict = r.strict && len(k.earlier) == 0
	}
	if n, err := s.notify(); err != nil {
		r.poll(err)
	} else {
		r.watch = &watches{fs: n, ends: newCompletions()}
	}
	if err := r.scan(ctx, apply); err != nil {
		return ended(ctx, err)
	}
	return ended(ctx, r.loop(ctx, func(b source.Batch) {
		if !b.Empty() {
			apply(b)
		}
	}))
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// awaitStdin waits for standard input to be read, or for ctx. A read from a terminal
// can't be interrupted, so it may go on after Run has returned, but does not delay it.
func (s *Source) awaitStdin(ctx context.Context) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = s.readStdin()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// runner turns events into scans.
type runner struct {
	*state
	watch  *watches // nil when polling
	strict bool     // the next scan is to find no mistakes
	// What the next scan is to look at: everything, or these files.
	all     bool
	dirty   map[string]bool
	known   completeness
	first   time.Time // of the events gathered; zero when there are none
	scanned time.Time // when the last scan ended
	marks   []mark
	wakeAt  time.Time // when emptied files are to be looked at again; zero for none
}

func (r *runner) close() {
	if r.watch != nil {
		_ = r.watch.fs.Close()
		r.watch.ends.close()
	}
}

// poll stops watching, and logs why and what would help.
func (r *runner) poll(err error) {
	help := "check the system's log"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		help = "raise fs.inotify.max_user_watches and fs.inotify.max_user_instances with sysctl, then restart"
	}
	r.log.Error("files can't be watched, so they are polled", "error", err, "interval", r.timing.poll, "help", help)
	r.close()
	r.watch = nil
}

// scan looks at what is due and hands over what changed.
func (r *runner) scan(ctx context.Context, apply func(source.Batch)) error {
	var batch source.Batch
	var err error
	if r.all || r.marks == nil || !slices.Equal(r.marks, r.markRoots()) {
		batch, err = r.scanEverything(ctx)
	} else {
		names := make([]string, 0, len(r.dirty))
		for name := range r.dirty {
			names = append(names, name)
		}
		slices.Sort(names)
		batch, err = r.scanFiles(ctx, names)
	}
	if err == nil && r.strict {
		err = r.mistakes(batch)
	}
	if err != nil {
		return err
	}
	r.strict = false
	r.all, r.first, r.wakeAt, r.scanned = false, time.Time{}, time.Time{}, time.Now()
	clear(r.dirty)
	r.known.clear()
	if r.emptied {
		r.all, r.wakeAt = true, time.Now().Add(r.timing.emptied)
	}
	apply(batch)
	r.save()
	return nil
}

// mistakes returns what is wrong with files; nil for nothing but definitions that are not used, and
// paths that are waited for.
func (r *runner) mistakes(b source.Batch) error {
	var list []source.Problem
	for _, name := range slices.Sorted(maps.Keys(b.Problems)) {
		for _, p := range b.Problems[name] {
			if p.Reason != source.Duplicate && (p.Reason != source.Unread || !slices.Contains(r.paths, p.File)) {
				list = append(list, p)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return source.MistakesError(list)
}

func (r *runner) scanEverything(ctx context.Context) (source.Batch, error) {
	r.marks = r.markRoots()
	if r.watch == nil {
		return r.scanAll(ctx, nil)
	}
	r.watch.begin()
	batch, err := r.scanAll(ctx, r.watch)
	r.watch.end()
	if r.watch.err != nil {
		r.poll(r.watch.err)
	}
	return batch, err
}

// mark identifies a directory. Another directory of the same path has another mark.
type mark struct {
	device, inode uint64
}

// markRoots looks at the paths themselves. Some changes raise no event: a parent's
// parent is renamed, something is mounted over a path.
func (r *runner) markRoots() []mark {
	marks := make([]mark, len(r.paths))
	for i, path := range r.paths {
		marks[i] = markOf(path)
	}
	return marks
}

func markOf(path string) mark {
	info, err := os.Stat(path)
	if err != nil {
		return mark{}
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok && info.IsDir() {
		return mark{uint64(sys.Dev), sys.Ino}
	}
	return mark{1, 1} // a file is replaced with every save
}

// always is ready at any time.
var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (r *runner) loop(ctx context.Context, apply func(source.Batch)) error {
	settle := time.NewTimer(time.Hour)
	settle.Stop()
	defer settle.Stop()
	check := time.NewTicker(r.timing.check)
	defer check.Stop()
	poll := time.NewTicker(r.timing.poll)
	defer poll.Stop()
	for {
		if !r.wakeAt.IsZero() && r.first.IsZero() {
			settle.Reset(time.Until(r.wakeAt))
		}
		var events chan fsnotify.Event
		var failures chan error
		var more <-chan struct{}
		if r.unsaved() {
			more = always
		}
		var completions <-chan completion
		if r.watch != nil {
			events, failures, completions = r.watch.fs.Events, r.watch.fs.Errors, r.watch.ends.told()
		}
		select {
		case <-ctx.Done():
			for r.unsaved() {
				r.save()
			}
			return nil
		case event, ok := <-events:
			if !ok {
				r.poll(errors.New("the watcher was closed"))
				continue
			}
			if r.note(event) {
				settle.Reset(r.settleTime())
			}
		case c := <-completions:
			if r.completed(c) {
				settle.Reset(r.settleTime())
			}
		case err := <-failures:
			// The usual failure is an overflow: events were lost, so everything is
			// looked at.
			r.log.Warn("events of files were lost, so all are read again", "error", err)
			r.lost()
			settle.Reset(r.settleTime())
		case <-check.C:
			r.save() // what could not be written before
			if r.watch != nil && !slices.Equal(r.marks, r.markRoots()) {
				r.lost()
				settle.Reset(r.settleTime())
			}
		case <-poll.C:
			if r.watch == nil {
				r.lost()
				settle.Reset(r.settleTime())
			}
		case <-more:
			r.save()
		case <-settle.C:
			if err := r.scan(ctx, apply); err != nil {
				return err
			}
		}
	}
}

// note reports whether an event matters, and remembers what to look at.
func (r *runner) note(event fsnotify.Event) bool {
	if !r.matters(event) {
		return false
	}
	r.known.noted[event.Name] = true
	return true
}

func (r *runner) matters(event fsnotify.Event) bool {
	path := event.Name
	if r.watch.wanted[path] {
		// A watched directory itself went away or moved.
		r.all = true
		return true
	}
	parent, base := filepath.Dir(path), filepath.Base(path)
	if r.watch.names[parent][base] {
		r.all = true
		return true
	}
	if !r.watch.whole[parent] || ignored(base) {
		return false
	}
	name := filepath.Join(r.tree.dirs[parent].name, base)
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().IsRegular(), err != nil && r.files[name] != nil:
		if !isManifest(base) {
			return false
		}
		r.dirty[name] = true
	case err != nil && !isManifest(base) && !r.tree.knows(path, name):
		return false // such as what an editor writes first, and then renames
	default:
		r.all = true
	}
	return true
}
