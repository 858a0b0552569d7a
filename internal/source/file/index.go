package file

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// entry is one key: who defines it and which definition is in force.
type entry struct {
	defs []*definition // in order; one, but for duplicates
	// winner is the definition whose object consumers hold; nil when none ever was
	// valid. It may be one that is gone from its file, while all others are invalid.
	winner     *definition
	generation int64
}

// index decides which definition of each key is in force.
type index struct {
	entries map[source.Key]*entry
	// contested are the keys with several definitions. A change anywhere may
	// reorder them, so they are looked at every time: there are few.
	contested map[source.Key]struct{}
}

func newIndex() *index {
	return &index{entries: map[source.Key]*entry{}, contested: map[source.Key]struct{}{}}
}

// update replaces definitions and says what that means for consumers. touched
// are the files whose problems may differ from before.
func (x *index) update(removed, added []*definition) (batch source.Batch, touched map[*file]struct{}) {
	touched = map[*file]struct{}{}
	keys := maps.Clone(x.contested)
	for _, def := range removed {
		e := x.entries[def.key]
		e.defs = slices.DeleteFunc(e.defs, func(d *definition) bool { return d == def })
		keys[def.key] = struct{}{}
	}
	for _, def := range added {
		e := x.entries[def.key]
		if e == nil {
			e = &entry{}
			x.entries[def.key] = e
		}
		e.defs = append(e.defs, def)
		keys[def.key] = struct{}{}
	}
	for _, key := range slices.SortedFunc(maps.Keys(keys), source.Key.Compare) {
		e := x.entries[key]
		for _, def := range e.defs {
			touched[def.doc.file] = struct{}{}
		}
		x.settle(key, e, &batch)
	}
	return batch, touched
}

func (x *index) settle(key source.Key, e *entry, batch *source.Batch) {
	if len(e.defs) > 1 {
		slices.SortFunc(e.defs, (*definition).compare)
		x.contested[key] = struct{}{}
	} else {
		delete(x.contested, key)
	}
	held := e.winner
	if len(e.defs) == 0 {
		if held != nil {
			batch.Deleted = append(batch.Deleted, key)
		}
		delete(x.entries, key)
		return
	}
	valid := slices.IndexFunc(e.defs, func(d *definition) bool { return d.object != nil })
	if valid < 0 {
		// Every text of it is invalid. What is in force, perhaps from a file that is
		// gone now, stays.
		if held == nil {
			return
		}
		valid = 0
		e.defs[0].take(held)
	}
	e.winner = e.defs[valid]
	if held != nil && held.sum == e.winner.sum {
		e.winner.object = held.object // one copy in memory
		return
	}
	e.publish(held)
	batch.Set = append(batch.Set, e.winner.object)
}

// take gives an invalid definition an earlier version of its object.
func (d *definition) take(was *definition) {
	d.object, d.sum, d.spec, d.stale = was.object, was.sum, was.spec, true
}

// publish puts the winner in force, and gives its object the next generation if
// anything but metadata differs from what was held.
func (e *entry) publish(held *definition) {
	def := e.winner
	if held == nil || held.spec != def.spec {
		e.generation++
	}
	published := def.object.GetResourceVersion() != ""
	if published && def.object.GetGeneration() == e.generation {
		return
	}
	if published {
		// Handed over before, so it is not ours to change any more.
		def.object = def.object.DeepCopyObject().(source.Object)
	}
	def.object.SetGeneration(e.generation)
	def.object.SetResourceVersion(strconv.FormatUint(def.sum, 16))
}

// problems lists what is wrong with a file, from the top.
func (x *index) problems(f *file) []source.Problem {
	var problems []source.Problem
	if f.unread != nil {
		p := *f.unread
		p.Stale = len(f.docs) > 0
		problems = append(problems, p)
	}
	for _, doc := range f.docs {
		for _, flt := range doc.faults {
			p := flt.problem(f.name, doc)
			if doc.broken {
				f.tellHeld(&p)
			}
			problems = append(problems, p)
		}
		for _, def := range doc.defs {
			for _, flt := range def.faults {
				p := flt.problem(f.name, doc)
				p.Key, p.Stale = def.key, def.object != nil
				problems = append(problems, p)
			}
			if p, ok := x.duplicate(def); ok {
				problems = append(problems, p)
			}
		}
	}
	slices.SortStableFunc(problems, func(a, b source.Problem) int { return a.Line - b.Line })
	return problems
}

func (f fault) problem(file string, doc *document) source.Problem {
	return source.Problem{File: file, Line: int(doc.line) + f.line, Field: f.field, Reason: f.reason, Message: f.message}
}

// duplicate reports a definition that isn't used because of an earlier one.
func (x *index) duplicate(def *definition) (source.Problem, bool) {
	if _, ok := x.contested[def.key]; !ok {
		return source.Problem{}, false
	}
	winner := x.entries[def.key].winner
	if winner == nil || winner == def || winner.compare(def) > 0 {
		return source.Problem{}, false
	}
	return source.Problem{
		Key: def.key, File: def.doc.file.name, Line: int(def.doc.line + def.line), Reason: source.Duplicate,
		Message: fmt.Sprintf("defined first in %s; this one is not used: remove or rename one of them", winner.place()),
	}, true
}

func (d *definition) place() string {
	if d.doc.line == 0 {
		return d.doc.file.name
	}
	return d.doc.file.name + ":" + strconv.Itoa(int(d.doc.line+d.line))
}

// tellHeld says in the problem of a broken document what stays in force.
func (f *file) tellHeld(p *source.Problem) {
	if f.held == nil || len(f.held.defs) == 0 {
		return
	}
	p.Stale = true
	if len(f.held.defs) == 1 {
		p.Key = f.held.defs[0].key
		return
	}
	p.Message += fmt.Sprintf(" (%d objects that the file defined before stay in force)", len(f.held.defs))
}
