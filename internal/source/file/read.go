package file

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"
)

// reading is one file on its way from disk to definitions.
type reading struct {
	candidate
	prior  *file // nil for a new file
	file   *file // the outcome; nil when nothing changed
	stamp  stamp
	err    error
	same   bool
	chunks []pending
}

// pending is a document that is new to its file.
type pending struct {
	chunk
	hash uint64    // of its text
	doc  *document // when already known by its hash
}

func (s *state) readFiles(ctx context.Context, todo []*reading) error {
	return forEach(ctx, todo, len(todo) > fewFiles, s.readFile)
}

// No more than this is read by one goroutine, one after the other: what the first has brought into
// the caches of a core is there for the next, and no other core has to be woken.
const (
	fewFiles = 4
	fewBytes = 16 << 10 // of documents
)

// forEach does something with each of some items until ctx ends.
func forEach[T any](ctx context.Context, items []T, parallel bool, do func(T)) error {
	if !parallel {
		for _, item := range items {
			if err := ctx.Err(); err != nil {
				return err
			}
			do(item)
		}
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, item := range items {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			do(item)
			return nil
		})
	}
	return group.Wait()
}

// readFile reads, splits, and recognises the documents that the file had before.
func (s *state) readFile(r *reading) {
	var text []byte
	text, r.stamp, r.err = s.load(r.name)
	if r.err != nil {
		return
	}
	hash := xxhash.Sum64(text)
	if r.prior != nil && r.prior.unread == nil && r.prior.hash == hash && r.prior.emptied == nil {
		r.prior.stamp = r.stamp
		r.same = true
		return
	}
	if r.prior != nil {
		r.name = r.prior.name // the copy that the table of files has
	}
	r.file = &file{name: r.name, root: r.root, hash: hash, stamp: r.stamp}
	if len(text) == 0 && r.prior != nil && len(r.prior.definitions()) > 0 {
		since := r.prior.emptied
		if since == nil {
			since = new(time.Now())
		}
		if time.Since(*since) < s.timing.emptied {
			r.prior.emptied = since
			r.same = true
			return
		}
	}

	for _, c := range split(text) {
		r.chunks = append(r.chunks, pending{chunk: c, hash: xxhash.Sum64(c.text)})
	}
	if r.prior != nil {
		recognise(r.chunks, r.prior.docs)
	}
}

// recognise finds the documents that a file had before. An edit leaves most of them alone, in
// front of it and behind it; others may have moved.
func recognise(chunks []pending, docs []*document) {
	for len(chunks) > 0 && len(docs) > 0 && chunks[0].is(docs[0]) {
		chunks, docs = chunks[1:], docs[1:]
	}
	for len(chunks) > 0 && len(docs) > 0 && chunks[len(chunks)-1].is(docs[len(docs)-1]) {
		chunks, docs = chunks[:len(chunks)-1], docs[:len(docs)-1]
	}
	known := map[uint64][]*document{}
	for _, doc := range docs {
		known[doc.hash] = append(known[doc.hash], doc)
	}
	for i := range chunks {
		c := &chunks[i]
		if docs := known[c.hash]; len(docs) > 0 && c.is(docs[0]) {
			known[c.hash] = docs[1:]
		}
	}
}

// is takes a document that the file had before, if its text is the same.
func (p *pending) is(doc *document) bool {
	if p.hash != doc.hash {
		return false
	}
	p.doc, p.text = doc, nil
	return true
}

// readDocuments parses and validates the documents that are new.
func (s *state) readDocuments(ctx context.Context, todo []*reading) error {
	reader := &reader{validator: s.validator, foreign: s.foreign, recent: newRecent()}
	type job struct {
		*pending
		isJSON  bool
		earlier map[uint64]*definition
	}
	var jobs []job
	size := 0
	for _, r := range todo {
		if r.same || r.err != nil {
			continue
		}
		isJSON := strings.EqualFold(filepath.Ext(r.name), ".json")
		earlier := validByText(r.prior)
		for i := range r.chunks {
			if p := &r.chunks[i]; p.doc == nil {
				jobs = append(jobs, job{p, isJSON, earlier})
				size += len(p.text)
			}
		}
	}
	return forEach(ctx, jobs, size > fewBytes, func(j job) {
		j.doc = reader.read(j.text, j.isJSON, j.earlier)
		j.doc.hash, j.text = j.hash, nil
	})
}

// validByText finds a file's valid definitions by the hash of what was written,
// so that an edit inside a List validates one item of it.
func validByText(f *file) map[uint64]*definition {
	if f == nil {
		return nil
	}
	known := map[uint64]*definition{}
	for _, doc := range f.docs {
		if doc.rest == nil || len(doc.rest.written) != len(doc.rest.many) {
			continue // its one object has changed if its text has
		}
		for i, raw := range doc.rest.written {
			if def := &doc.rest.many[i]; def.refused == nil {
				known[raw] = def
			}
		}
	}
	return known
}
