package file

import (
	"cmp"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// A document is one document of a file with the objects that it defines: one as
// a rule, many for a List.
type document struct {
	file  *file
	hash  uint64 // of its text
	line  int32  // where it begins in the file, 1-based
	order int32  // position in the file
	rest  *rest  // nil for most
	// only is the definition of a document that has one, as most have; with no
	// document if it has none, or many. Like these it doesn't move once the document
	// is read: the index points at it.
	only definition
}

// rest is what only few documents have. It is apart, so that all others stay small.
type rest struct {
	// many are the definitions of a document that has several.
	many []definition
	// faults are those of text that can't be attributed to an object.
	faults []fault
	// foreign are other implementations' policies; their lines are relative to the document, 0-based.
	foreign []foreign.Policy
	// unreadable: a part of the text can't be read, so that objects may be missing.
	unreadable bool
	// written are the hashes of the objects as the text has them, where there are
	// several.
	written []uint64
}

// A definition is one object as one place in a file has it. There is one for each
// object, so it has no field that most objects can do without.
type definition struct {
	doc     *document
	object  source.Object // nil when it never was valid
	sum     uint64        // hash of the object with defaults, or of its stand-in
	spec    uint64        // the same without metadata: a change is a new generation
	refused *refusal      // nil for valid text
	next    *definition   // the index's
	line    int32         // relative to the document, 0-based
	order   int32         // position in the document
}

// A refusal is what is known of a definition whose text is invalid.
type refusal struct {
	key    object.Key
	faults []fault
	// standIn is what is in force instead of an object that never was valid; nil for nothing.
	standIn source.Object
}

// key names the object. A valid definition has it in its object, so it is not stored a
// second time.
func (d *definition) key() object.Key {
	if d.object != nil {
		return source.KeyOf(d.object)
	}
	return d.refused.key
}

// inForce is what consumers hold if this is the definition that counts; nil for nothing.
func (d *definition) inForce() source.Object {
	switch {
	case d.object != nil:
		return d.object
	case d.refused != nil:
		return d.refused.standIn
	}
	return nil
}

// faults are what is wrong with the text.
func (d *definition) faults() []fault {
	if d.refused == nil {
		return nil
	}
	return d.refused.faults
}

// definitions returns pointers to defs. The pointer identifies a definition.
func (doc *document) definitions() []*definition {
	if doc.only.doc != nil {
		return []*definition{&doc.only}
	}
	if doc.rest == nil {
		return nil
	}
	defs := make([]*definition, len(doc.rest.many))
	for i := range defs {
		defs[i] = &doc.rest.many[i]
	}
	return defs
}

// hold makes definitions those of a document that has none yet.
func (doc *document) hold(defs []definition) {
	if len(defs) == 1 {
		doc.only = defs[0]
	} else if len(defs) > 1 {
		doc.extra().many = slices.Clip(defs)
	}
}

func (doc *document) faults() []fault {
	if doc.rest == nil {
		return nil
	}
	return doc.rest.faults
}

// extra returns rest, and makes it first if there is none.
func (doc *document) extra() *rest {
	if doc.rest == nil {
		doc.rest = &rest{}
	}
	return doc.rest
}

// note records a fault of text that says of no object that it is that.
func (doc *document) note(f fault) {
	extra := doc.extra()
	extra.faults = append(extra.faults, f)
}

// unreadable records a fault of text that can't be read, which may have defined any object.
func (doc *document) unreadable(f fault) {
	doc.note(f)
	doc.rest.unreadable = true
}

func (doc *document) isUnreadable() bool { return doc.rest != nil && doc.rest.unreadable }

// A fault is a problem whose place is relative to its document.
type fault struct {
	line    int // 0-based
	field   string
	message string
	reason  source.Reason
}

// compare orders definitions by what "first" means to the user.
func (d *definition) compare(o *definition) int {
	return cmp.Or(
		d.doc.file.compare(o.doc.file),
		cmp.Compare(d.doc.order, o.doc.order),
		cmp.Compare(d.order, o.order),
	)
}
