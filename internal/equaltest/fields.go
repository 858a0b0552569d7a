package equaltest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Fields changes every field of a value, one at a time, and fails the test for each
// change that equal does not notice, in either order of its arguments.
//
// The sample is a struct or a pointer to one. A nil pointer, slice or map in it is
// filled first, so that what it would hold is checked too; a type within itself is
// filled once. An interface can't be filled: name a value for it by Other. Elements of
// slices and maps that are pointers are never nil.
//
// A field is named by its path from the sample: "Rules[].Backends[].Port" are the
// ports of the elements of two slices, "Labels{}" the values of a map. Pointers don't
// show in a path.
func Fields[T any](t testing.TB, sample T, equal func(a, b T) bool, options ...Option) {
	t.Helper()
	for _, problem := range check(sample, equal, options) {
		t.Error(problem)
	}
}

// Option changes what Fields expects of one field.
type Option func(*checker)

// Ignored names fields that equal leaves out on purpose, each with all that is in it.
// Equal must not notice their changes.
func Ignored(paths ...string) Option {
	return func(c *checker) {
		for _, p := range paths {
			c.ignored[p] = false
		}
	}
}

// NotNil names pointers, interfaces, slices and maps that are never nil or empty: equal
// is not asked about such values.
func NotNil(paths ...string) Option {
	return func(c *checker) {
		for _, p := range paths {
			c.notNil[p] = false
		}
	}
}

// Other gives a field another value, in place of all changes that Fields would think
// of: for interfaces and functions, and for values that have a form of their own.
func Other(path string, value any) Option {
	return func(c *checker) { c.others[path] = &other{value: value} }
}

type checker struct {
	// Options by path. Each must be met, lest it outlives its field.
	ignored, notNil map[string]bool
	others          map[string]*other

	problems []string
}

type other struct {
	value any
	met   bool
}

func check[T any](sample T, equal func(a, b T) bool, options []Option) []string {
	c := &checker{ignored: map[string]bool{}, notNil: map[string]bool{}, others: map[string]*other{}}
	for _, o := range options {
		o(c)
	}
	base := c.filled(reflect.ValueOf(&sample).Elem(), "", nil)
	a := base.Interface().(T)
	if !equal(a, a) {
		c.problem("a value does not equal itself")
	}
	root := base.Type()
	pointer := root.Kind() == reflect.Pointer
	if pointer {
		base = base.Elem()
	}
	if base.Kind() != reflect.Struct {
		return append(c.problems, fmt.Sprintf("%s is neither a struct nor a pointer to one", root))
	}
	c.variants(base, "", func(path, how string, v reflect.Value) {
		if pointer {
			v = pointerTo(v)
		}
		b := v.Interface().(T)
		noticed, back, panicked := compare(equal, a, b)
		switch ignored := c.ignores(path); {
		case panicked != nil:
			c.problem("%s %s: the comparison panics: %v", path, how, panicked)
		case noticed != back:
			c.problem("%s %s: it depends on the order of the values whether the change is noticed", path, how)
		case !noticed && !ignored:
			c.problem("%s %s: the change is not noticed", path, how)
		case noticed && ignored:
			c.problem("%s %s: the change is noticed, though the field is said to be left out", path, how)
		}
	})
	c.unmet()
	return c.problems
}

// compare reports whether equal notices a difference, in either order of its arguments.
func compare[T any](equal func(a, b T) bool, a, b T) (noticed, back bool, panicked any) {
	defer func() { panicked = recover() }()
	return !equal(a, b), !equal(b, a), nil
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// ignores reports whether a field, or what it is in, is left out.
func (c *checker) ignores(path string) bool {
	for p := range c.ignored {
		if rest, ok := strings.CutPrefix(path, p); ok && (rest == "" || strings.ContainsRune(".[{", rune(rest[0]))) {
			c.ignored[p] = true
			return true
		}
	}
	return false
}

// unmet complains of options whose fields are not there.
func (c *checker) unmet() {
	var paths []string
	for _, options := range []map[string]bool{c.ignored, c.notNil} {
		for path, met := range options {
			if !met {
				paths = append(paths, path)
			}
		}
	}
	for path, o := range c.others {
		if !o.met {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		c.problem("there is no field %s to change", path)
	}
}
