package file

import (
	"path/filepath"
	"time"
)

// completion says whether a file is complete: closed after writing, or renamed into place.
// One that is being written or is gone is not.
type completion struct {
	path     string
	complete bool
}

// completeness is what is known of the files that events were about since the last scan. A
// complete file is read almost at once; whatever else has happened, a removal among it, may
// be half of an edit, such as a file that is moved or an object that goes from one file to
// another, so that longer quiet is waited for. In a stream of complete files the first is read
// at once, and what follows gathers for a while.
type completeness struct {
	noted    map[string]bool // paths of the events gathered
	complete map[string]bool // of those that matter, by path
}

func newCompleteness() completeness {
	return completeness{noted: map[string]bool{}, complete: map[string]bool{}}
}

func (c completeness) clear() {
	clear(c.noted)
	clear(c.complete)
}

// all reports whether everything that has happened is that files have become complete.
func (c completeness) all() bool {
	for path := range c.noted {
		if !c.complete[path] {
			return false
		}
	}
	return len(c.noted) > 0
}

// lost has everything looked at, as after events that nobody was told of.
func (r *runner) lost() {
	r.all = true
	r.known.noted[""] = true // which never becomes complete
}

// completed takes what is said of a file, and reports whether it tells how long to wait.
func (r *runner) completed(c completion) bool {
	parent, base := filepath.Dir(c.path), filepath.Base(c.path)
	if !r.watch.names[parent][base] && (!r.watch.whole[parent] || ignored(base) || !isManifest(base)) {
		return false
	}
	r.known.complete[c.path] = c.complete
	return r.known.noted[c.path]
}

// settleTime is how long to wait after an event: until it is quiet, but not for ever.
func (r *runner) settleTime() time.Duration {
	if r.first.IsZero() {
		r.first = time.Now()
	}
	quiet := r.timing.settle
	if r.known.all() {
		quiet = max(r.timing.complete, r.timing.apart-time.Since(r.scanned))
	}
	return max(0, min(quiet, r.timing.maxSettle-time.Since(r.first)))
}
