package file

import "github.com/gatehouse-dev/gatehouse/internal/object"

// incumbent is what is in force of an object before an update.
type incumbent struct {
	current *definition // which may have left its file; nil where it was in an earlier process
	file    string      // empty for nothing
	sum     uint64
	// fresh are the definitions that the update brings; all are if nothing is current.
	fresh map[*definition]bool
	name  func(file string) string // as file has it
}

func (x *index) incumbent(key object.Key, current *definition, fresh map[*definition]bool) incumbent {
	of := incumbent{current: current, fresh: fresh, name: func(file string) string { return file }}
	if current != nil {
		of.file, of.sum = current.doc.file.name, current.sum
	} else if of.file, of.sum = x.first(key); of.file != "" {
		of.name = x.absolute
	}
	return of
}

// distance is that of a definition from the incumbent: a copy of an object takes nothing from
// it, wherever it stands, and an edit of the object is still the object.
func (i incumbent) distance(def *definition) int {
	fresh := i.current == nil || i.fresh[def]
	switch {
	case i.file == "" || i.name(def.doc.file.name) != i.file:
		return 4
	case def == i.current:
		return 0
	case fresh && def.sum == i.sum:
		return 1 // it has moved in its file
	case fresh:
		return 2
	default:
		return 3 // it wasn't in force before
	}
}
