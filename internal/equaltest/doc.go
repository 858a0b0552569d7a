// Package equaltest checks hand-written Equal methods field by field.
//
// A commit ends where an Equal method says that nothing has changed. A field that
// such a method leaves out is a change that nobody ever sees. The compiler can't
// find it; Fields does: it changes each field of a value by reflection, also the
// unexported ones and those of nested structs, and expects the method to notice.
//
// Invariants:
//   - A field that is added to a type is checked without a change of the test.
//   - A field that is left out on purpose is named in the test, and the test fails
//     when the method compares it after all: the list stays true.
//   - The sample is never written to; it is copied along the path to the field.
//
// The package is for tests only, and knows nothing of the types that it checks.
package equaltest
