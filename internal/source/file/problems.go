package file

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// problems lists what is wrong with a file, from the top.
func (x *index) problems(f *file) []source.Problem {
	var problems []source.Problem
	was := x.heldOf(f)
	x.found = map[object.Key]*definition{}
	defer func() { x.found = nil }()
	if f.unread != nil {
		p := *f.unread
		p.Stale = len(f.docs) > 0 || f.held != nil
		p.Held = x.held(f.definitions())
		problems = append(problems, p)
	}
	for _, doc := range f.docs {
		for _, flt := range doc.faults() {
			p := flt.problem(f.name, doc)
			if doc.mayHide() {
				was.tell(&p)
			}
			if schema.Guards(p.Guess.Kind) && x.winner(p.Guess) == nil {
				p.Message = source.Also(p.Message, "until it can be read, what it was to guard may be open")
			}
			problems = append(problems, p)
		}
		for _, def := range doc.definitions() {
			first := def.firstFault()
			for i, flt := range def.faults() {
				p := flt.problem(f.name, doc)
				x.attribute(&p, def, was)
				if i == first {
					for _, note := range x.notes(def, was) {
						p.Message = source.Also(p.Message, note)
					}
				}
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

// firstFault is the index of the fault that is told first.
func (d *definition) firstFault() (first int) {
	faults := d.faults()
	for i := range faults {
		if faults[i].line < faults[first].line {
			first = i
		}
	}
	return first
}

// attribute says which object a problem with a definition is about. One that is guessed is
// named if the definition is in force for it.
func (x *index) attribute(p *source.Problem, def *definition, was *heldObjects) {
	key := def.key()
	p.Stale = def.object != nil
	switch {
	case !def.guessed() || x.winner(key) == def:
		p.Key = key
	case !schema.Unnamed(key.Name.Name):
		p.Guess = key
	}
	if def.guessed() {
		for _, held := range was.mayBe(def) {
			if held.object != nil {
				p.Held = append(p.Held, held.key())
			}
		}
	}
}

// notes say what is in force in place of a definition that is not valid.
func (x *index) notes(def *definition, was *heldObjects) (notes []string) {
	winner := x.winner(def.key())
	if def.object != nil {
		return nil
	}
	for _, held := range was.mayBe(def) {
		notes = append(notes, fmt.Sprintf("it may be %s, which the file had before, and which stays in force", held.key()))
	}
	switch d := kind.All.Of(def.key().Kind); {
	case winner != def:
	case d != nil && d.Guards:
		notes = append(notes, "until it is valid, nobody passes where it would say who may, as far as that can be read")
	default:
		notes = append(notes, "until it is valid, what it would take answers 500, as far as that can be read")
	}
	if list := def.refused.unread; len(list) > 0 && (winner == nil || winner == def) {
		notes = append(notes, "of "+strings.Join(list, ", ")+" nothing can be read: until it can be read, what it was to guard there may be open")
	}
	return notes
}

func (f fault) problem(file string, doc *document) source.Problem {
	return source.Problem{File: file, Line: int(doc.line) + f.line, Field: f.field, Reason: f.reason, Message: f.message, Guess: f.guess}
}

// duplicate reports a definition that isn't used because of an earlier one.
func (x *index) duplicate(def *definition) (source.Problem, bool) {
	if len(x.contested) == 0 {
		return source.Problem{}, false
	}
	key := def.key()
	if _, ok := x.contested[key]; !ok {
		return source.Problem{}, false
	}
	winner := x.winner(key)
	if winner == nil || winner == def || def.object == nil && winner.compare(def) > 0 {
		return source.Problem{}, false
	}
	return source.Problem{
		Key: key, File: def.doc.file.name, Line: int(def.doc.line + def.line), Reason: source.Duplicate,
		Message: fmt.Sprintf("defined first in %s; this one is not used: remove or rename one of them", winner.place()),
	}, true
}

func (d *definition) place() string {
	if d.doc.line == 0 {
		return d.doc.file.name
	}
	return d.doc.file.name + ":" + strconv.Itoa(int(d.doc.line+d.line))
}

// held returns which of some definitions have a last valid version that is in force.
func (x *index) held(defs []*definition) []object.Key {
	var keys []object.Key
	for _, def := range defs {
		if def.object != nil && x.winner(def.key()) == def {
			keys = append(keys, def.key())
		}
	}
	return keys
}
