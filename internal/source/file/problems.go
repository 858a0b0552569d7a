package file

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// problems lists what is wrong with a file, from the top.
func (x *index) problems(f *file) []source.Problem {
	var problems []source.Problem
	x.found = map[object.Key]*definition{}
	defer func() { x.found = nil }()
	if f.unread != nil {
		p := *f.unread
		p.Stale = len(f.docs) > 0 || f.lastValid != nil
		p.LastValid = x.inForce(f.definitions())
		problems = append(problems, p)
	}
	var lastValid []object.Key
	if f.lastValid != nil {
		lastValid = x.inForce(f.lastValid.definitions())
	}
	for _, doc := range f.docs {
		for _, flt := range doc.faults() {
			p := flt.problem(f.name, doc)
			if doc.isUnreadable() {
				p.Stale = len(lastValid) > 0
				p.LastValid, lastValid = lastValid, nil // they are told once
			}
			problems = append(problems, p)
		}
		for _, def := range doc.definitions() {
			for i, flt := range def.faults() {
				p := flt.problem(f.name, doc)
				p.Key, p.Stale = def.key(), def.object != nil
				if i == def.firstFault() {
					x.tellGuard(&p, def)
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

// places lists the objects in force that stand in a file, from the top.
func (x *index) places(f *file) (list []source.Place) {
	x.found = map[object.Key]*definition{}
	defer func() { x.found = nil }()
	for _, doc := range f.docs {
		for _, def := range doc.definitions() {
			if key := def.key(); x.winner(key) == def {
				list = append(list, source.Place{Key: key, Line: int(doc.line + def.line)})
			}
		}
	}
	return list
}

// foreign lists other implementations' policies that stand in a file, from the top.
func (f *file) foreign() (list []foreign.Policy) {
	for _, doc := range f.docs {
		if doc.rest == nil {
			continue
		}
		for _, p := range doc.rest.foreign {
			p.Line += int(doc.line)
			list = append(list, p)
		}
	}
	return list
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

// tellGuard says in the problem of a policy that guards and never was valid what that means.
func (x *index) tellGuard(p *source.Problem, def *definition) {
	switch d := kind.All.Of(p.Key.Kind); {
	case def.object != nil || d == nil || !d.Guards:
	case x.winner(p.Key) == def:
		p.Message = source.Also(p.Message, "until it is valid, nobody passes where it is for")
	case x.winner(p.Key) == nil:
		p.Message = source.Also(p.Message, "no target of it can be read: it guards nothing until it is valid")
	}
}

func (f fault) problem(file string, doc *document) source.Problem {
	return source.Problem{File: file, Line: int(doc.line) + f.line, Field: f.field, Reason: f.reason, Message: f.message}
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

// inForce returns which of some definitions have a last valid version that is in force.
func (x *index) inForce(defs []*definition) []object.Key {
	var keys []object.Key
	for _, def := range defs {
		if def.object != nil && x.winner(def.key()) == def {
			keys = append(keys, def.key())
		}
	}
	return keys
}
