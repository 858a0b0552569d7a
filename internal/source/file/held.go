package file

import (
	"fmt"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// heldObjects are what stays in force although its file doesn't define it any more. They are
// looked up once for each object of the file that is broken, and there may be thousands of both.
type heldObjects struct {
	all    []*definition
	force  []*definition                 // those that are in force, in order
	byKind map[object.Kind][]*definition // the same
	keys   []object.Key                  // of those with a last valid version that is in force
	told   bool
}

// heldOf returns what is held of a file.
func (x *index) heldOf(f *file) *heldObjects {
	h := &heldObjects{}
	if f.held == nil {
		return h
	}
	h.all, h.byKind = f.held.definitions(), map[object.Kind][]*definition{}
	for _, def := range h.all {
		if x.winner(def.key()) == def {
			of := def.key().Kind
			h.force, h.byKind[of] = append(h.force, def), append(h.byKind[of], def)
		}
	}
	h.keys = x.held(h.all)
	return h
}

// mostHeld is how many objects are named that a definition may be.
const mostHeld = 4

// mayBe returns the first that a definition which is not valid may be.
func (h *heldObjects) mayBe(def *definition) []*definition {
	kinds, anyKind := def.refused.mayBe()
	if anyKind {
		return h.force[:min(len(h.force), mostHeld)]
	}
	var out []*definition
	for _, of := range kinds {
		list := h.byKind[of]
		out = append(out, list[:min(len(list), mostHeld)]...)
	}
	slices.SortFunc(out, func(a, b *definition) int { return a.key().Compare(b.key()) })
	return out[:min(len(out), mostHeld)]
}

// tell says in the problem of a broken document what stays in force. The first one names all.
func (h *heldObjects) tell(p *source.Problem) {
	switch {
	case len(h.all) == 0:
	case len(h.all) == 1 && len(h.force) == 0: // another file has it
	case len(h.all) == 1:
		p.Stale = h.all[0].object != nil
		p.Key, p.Guess = h.all[0].key(), object.Key{}
	default:
		p.Stale = true
		if !h.told {
			p.Held, h.told = h.keys, true
		}
		p.Message += fmt.Sprintf(" (%d objects that the file defined before stay in force)", len(h.all))
	}
}
