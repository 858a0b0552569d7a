package file

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// suspects are what of a file may be about objects that it doesn't define any more: one edit
// can misspell the kind of an object and its name, or break it and its name.
type suspects struct {
	defined map[object.Key]bool // objects that the file defines, rightly or as can be guessed
	broken  []*document
	// fresh never were valid, and are of objects that the file didn't have before; doubtful
	// are all that never were valid, or whose object had to be guessed.
	fresh, doubtful []*definition
}

// suspectsOf returns the suspects of a file. Prior is what it was before, which may be nil.
func suspectsOf(f, prior *file) suspects {
	had := map[object.Key]bool{}
	if prior != nil {
		for _, def := range prior.definitions() {
			had[def.key()] = true
		}
	}
	return suspectsIn(f.docs, func(key object.Key) bool { return had[key] })
}

func suspectsIn(docs []*document, had func(object.Key) bool) suspects {
	s := suspects{defined: map[object.Key]bool{}}
	for _, doc := range docs {
		if doc.mayHide() {
			s.broken = append(s.broken, doc)
		}
		for _, def := range doc.definitions() {
			key := def.key()
			s.defined[key] = true
			if def.object == nil && !had(key) {
				s.fresh = append(s.fresh, def)
			}
			if def.object == nil || def.guessed() {
				s.doubtful = append(s.doubtful, def)
			}
		}
	}
	return s
}

func (s suspects) none() bool { return len(s.broken)+len(s.fresh)+len(s.doubtful) == 0 }

// be reports whether one of the suspects may be about an object; held, whether that was the
// case before.
func (s suspects) be(key object.Key, held bool) bool {
	if slices.ContainsFunc(s.broken, func(doc *document) bool { return doc.mayBe(key) }) {
		return true
	}
	if schema.Unnamed(key.Name.Name) {
		return false // the suspect has a name of its own too
	}
	mayBe := func(def *definition) bool { return def.mayBe(key) }
	return slices.ContainsFunc(s.fresh, mayBe) || held && slices.ContainsFunc(s.doubtful, mayBe)
}

// mayBe reports whether a definition that is not valid may be about an object of another key.
func (d *definition) mayBe(key object.Key) bool {
	switch r := d.refused; {
	case r == nil:
		return false
	case !r.guessed:
		return key.Kind == r.key.Kind
	case len(r.kinds) == 0:
		return true
	default:
		return slices.Contains(r.kinds, key.Kind)
	}
}
