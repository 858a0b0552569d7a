package file

import (
	"cmp"
	"slices"

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
	// broken: objects may be missing from defs because of faults.
	broken bool
	// names are those of objects that may be missing because of faults.
	names []string
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
	// standIn is what is in force instead of an object that never was valid; nil for a kind
	// that guards nothing.
	standIn source.Object
	// guessed says that the text doesn't say rightly which object it defines: key is what seems
	// to be meant, and kinds are those that can be, none for any. What it guards is held, but
	// it takes nothing from an object that is rightly defined.
	guessed bool
	kinds   []object.Kind
	// unread are the parents and hosts of which nothing can be read, for a stand-in.
	unread []string
	// kept is the last valid version, as JSON, that this process can't use: it needs
	// another channel.
	kept []byte
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

// guessed reports whether the text doesn't say rightly which object it defines.
func (d *definition) guessed() bool { return d.refused != nil && d.refused.guessed }

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

// note records a fault that may be about any object of a name, or about any at all if
// there is none.
func (doc *document) note(f fault, name string) {
	extra := doc.extra()
	if name == "" {
		extra.broken = true
	} else {
		extra.names = append(extra.names, name)
	}
	extra.faults = append(extra.faults, f)
}

// mayHide reports whether objects may be missing because of the document's faults.
func (doc *document) mayHide() bool {
	return doc.rest != nil && (doc.rest.broken || len(doc.rest.names) > 0)
}

// A fault is a problem whose place is relative to its document.
type fault struct {
	line    int // 0-based
	field   string
	message string
	reason  source.Reason
	guess   object.Key // that the text seems to be about, if it can't be attributed
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

// compare orders definitions by what "first" means to the user.
func (d *definition) compare(o *definition) int {
	return cmp.Or(
		cmp.Compare(rank(d.guessed()), rank(o.guessed())),
		d.doc.file.compare(o.doc.file),
		cmp.Compare(d.doc.order, o.doc.order),
		cmp.Compare(d.order, o.order),
	)
}
