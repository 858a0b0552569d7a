package file

import (
	"math"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// replace puts what was read in the place of what was known, and returns the
// definitions that go and come.
func (s *state) replace(r *reading) (removed, added []*definition) {
	if r.err != nil {
		return nil, s.keepUnread(r)
	}
	f := r.file
	s.files[f.name] = f
	f.docs = make([]*document, 0, len(r.chunks))
	for i, p := range r.chunks {
		doc := p.doc
		stays := doc.file != nil // those that were read now have none yet
		doc.file, doc.line, doc.order = f, int32(p.line), int32(i)
		f.docs = append(f.docs, doc)
		if !stays {
			added = append(added, doc.definitions()...)
		}
	}
	if r.prior != nil {
		for _, doc := range r.prior.docs {
			if doc.file != f {
				removed = append(removed, doc.definitions()...)
			}
		}
		if r.prior.lastValid != nil {
			removed = append(removed, r.prior.lastValid.definitions()...)
		}
	}
	keepValid(removed, added)
	return removed, append(added, keepEarlier(f, r.prior, removed)...)
}

// keepUnread keeps what is known of a file that can't be read, and sets its problem. It
// returns what an earlier process has kept of one that is new.
func (s *state) keepUnread(r *reading) (added []*definition) {
	f := r.prior
	if f == nil {
		f = &file{name: r.name, root: r.root}
	}
	if s.files[f.name] == nil {
		s.files[f.name] = f
		added = f.definitions()
	}
	f.unread = &source.Problem{File: r.name, Reason: source.Unread, Message: readMessage(r.err)}
	return added
}

// keepValid gives definitions that are invalid now the object they had before.
func keepValid(removed, added []*definition) {
	var last map[object.Key]*definition
	for _, def := range added {
		if def.object != nil {
			continue
		}
		if last == nil {
			last = lastValid(removed)
		}
		if was := last[def.key()]; was != nil {
			def.take(was)
			delete(last, def.key())
		}
	}
}

func lastValid(defs []*definition) map[object.Key]*definition {
	last := map[object.Key]*definition{}
	for _, def := range defs {
		if def.inForce() == nil {
			continue
		}
		key := def.key()
		first := last[key]
		if first == nil || first.object == nil && def.object != nil || (first.object == nil) == (def.object == nil) && def.before(first) {
			last[key] = def
		}
	}
	return last
}

func (d *definition) before(o *definition) bool {
	if d.doc.order != o.doc.order {
		return d.doc.order < o.doc.order
	}
	return d.order < o.order
}

// keepEarlier keeps the objects that a file had before and doesn't define now, where a part of it can't
// be read.
func keepEarlier(f, prior *file, removed []*definition) []*definition {
	if prior == nil || !slices.ContainsFunc(f.docs, (*document).isUnreadable) {
		return nil
	}
	defined := map[object.Key]bool{}
	for _, def := range f.definitions() {
		defined[def.key()] = true
	}
	earlier := &document{file: f, order: math.MaxInt32}
	var defs []definition
	for key, was := range lastValid(removed) {
		if !defined[key] {
			def := definition{doc: earlier}
			def.take(was)
			defs = append(defs, def)
		}
	}
	f.setLastValid(earlier, defs)
	return earlier.definitions()
}

// setLastValid gives a file definitions that are in none of its documents.
func (f *file) setLastValid(d *document, defs []definition) {
	if len(defs) > 0 {
		slices.SortFunc(defs, func(a, b definition) int { return a.key().Compare(b.key()) })
		d.hold(defs)
		f.lastValid = d
	}
}
