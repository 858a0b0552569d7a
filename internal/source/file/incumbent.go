package file

// incumbent is what is in force of an object before an update.
type incumbent struct {
	held *definition // which may have left its file; nil for none
	// first is the file that an earlier process had it from, if that is the only thing known.
	first string
	// fresh are the definitions that the update brings.
	fresh map[*definition]bool
}

// distance is that of a definition from the incumbent: a copy of an object takes nothing from
// it, wherever it stands, and an edit of the object is still the object.
func (i incumbent) distance(def *definition) int {
	file := i.first
	if i.held != nil {
		file = i.held.doc.file.name
	}
	switch {
	case def == i.held:
		return 0
	case file == "" || def.doc.file.name != file:
		return 3
	case i.fresh[def]:
		return 1
	default:
		return 2 // it wasn't in force before
	}
}
