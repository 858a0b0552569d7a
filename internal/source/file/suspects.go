package file

import (
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// suspects are what of a file may be about objects that it doesn't define any more: one edit
// can misspell the kind of an object and its name, or break it and its name.
type suspects struct {
	defined map[object.Key]bool // objects that the file defines, rightly or as can be guessed
	// broken is true where a text may be about anything, and names are those that one may be of.
	broken bool
	names  map[string]bool
	// fresh never were valid, and are of objects that the file didn't have before; doubtful
	// are all that never were valid, or whose object had to be guessed.
	fresh, doubtful kindSet
}

// kindSet are kinds that definitions can be of.
type kindSet struct {
	any   bool
	kinds map[object.Kind]bool
}

func (s *kindSet) add(def *definition) {
	kinds, anyKind := def.refused.mayBe()
	s.any = s.any || anyKind
	for _, of := range kinds {
		if s.kinds == nil {
			s.kinds = map[object.Kind]bool{}
		}
		s.kinds[of] = true
	}
}

func (s *kindSet) has(of object.Kind) bool { return s.any || s.kinds[of] }

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
	s := suspects{defined: map[object.Key]bool{}, names: map[string]bool{}}
	for _, doc := range docs {
		if doc.rest != nil {
			s.broken = s.broken || doc.rest.broken
			for _, name := range doc.rest.names {
				s.names[name] = true
			}
		}
		for _, def := range doc.definitions() {
			key := def.key()
			s.defined[key] = true
			if def.object == nil && !had(key) {
				s.fresh.add(def)
			}
			if def.object == nil || def.guessed() {
				s.doubtful.add(def)
			}
		}
	}
	return s
}

func (s *suspects) none() bool {
	return !s.broken && len(s.names) == 0 && !s.doubtful.any && len(s.doubtful.kinds) == 0 // fresh are doubtful
}

// be reports whether one of the suspects may be about an object; held, whether that was the
// case before.
func (s *suspects) be(key object.Key, held bool) bool {
	if s.broken || s.names[key.Name.Name] {
		return true
	}
	if schema.Unnamed(key.Name.Name) {
		return false // the suspect has a name of its own too
	}
	return s.fresh.has(key.Kind) || held && s.doubtful.has(key.Kind)
}

// mayBe returns the kinds that text which is refused may be about besides its own object.
func (r *refusal) mayBe() (kinds []object.Kind, anyKind bool) {
	switch {
	case r == nil:
		return nil, false
	case !r.guessed:
		return []object.Kind{r.key.Kind}, false
	default:
		return r.kinds, len(r.kinds) == 0
	}
}
