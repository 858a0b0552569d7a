package schema

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Causes are the errors of an object from which others follow: fields that are misspelt or
// guessed.
type Causes struct{ misspelt []misspeltField }

type misspeltField struct {
	parent []string
	meant  string // empty where it may be any field there
}

// maxCauses bounds what each error is compared with.
const maxCauses = 20

// CausesOf returns those of some errors, and puts them before the others.
func CausesOf(errs field.ErrorList) (c Causes, sorted field.ErrorList) {
	var others field.ErrorList
	for _, err := range errs {
		of, ok := err.BadValue.(unknown)
		if !ok || !of.guessed {
			others = append(others, err)
			continue
		}
		sorted = append(sorted, err)
		if way := steps(err.Field); len(way) > 0 && len(c.misspelt) < maxCauses {
			c.misspelt = append(c.misspelt, misspeltField{way[:len(way)-1], of.meant})
		}
	}
	return c, append(sorted, others...)
}

// Cause reports whether an error may follow from a field that is misspelt: the field that is
// missing is there under another name, or a rule is about what that is in. It is told when the
// field is mended, if it is still so.
func (c Causes) Cause(err *field.Error) bool {
	if _, is := err.BadValue.(unknown); is || len(c.misspelt) == 0 {
		return false
	}
	way := steps(err.Field)
	return slices.ContainsFunc(c.misspelt, func(m misspeltField) bool {
		n := len(m.parent)
		missing := err.Type == field.ErrorTypeRequired && len(way) == n+1 && (m.meant == "" || way[n] == m.meant) && slices.Equal(way[:n], m.parent)
		return missing || slices.Equal(way, m.parent)
	})
}
