package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// unknownField reports a field that the kind doesn't have. Path is kept as text:
// it comes from the pruner.
func unknownField(path, hint string) *field.Error {
	detail := "unknown field"
	if hint != "" {
		detail += ": " + hint
	}
	return &field.Error{Type: field.ErrorTypeForbidden, Field: path, BadValue: unknown{}, Detail: detail}
}

// misspelt reports a field that the kind doesn't have and that may be another one of those that
// it has: the one that is near, or whichever of them.
func misspelt(path, written string, known []string) *field.Error {
	near := spelling.Nearest(written, slices.Values(known))
	hint := ""
	switch {
	case near != "":
		hint = "did you mean " + near + "?"
	case len(known) > maxFields:
		hint = fmt.Sprintf("there are %s and %d more", strings.Join(known[:maxFields], ", "), len(known)-maxFields)
	case len(known) > 1:
		hint = "there are " + strings.Join(known[:len(known)-1], ", ") + " and " + known[len(known)-1]
	case len(known) == 1:
		hint = "there is " + known[0]
	}
	err := unknownField(path, hint)
	err.BadValue = unknown{meant: near, guessed: len(known) > 0}
	return err
}

// maxFields is how many fields are told to somebody who wrote another one.
const maxFields = 10

// unknown marks the errors of unknownField.
type unknown struct {
	meant   string // the field that may be meant; empty where none is near
	guessed bool   // it may be another one of those in its place
}

// shown is a name out of a document, quoted if it has what can't be printed.
func shown(name string) string {
	if quoted := strconv.Quote(name); quoted[1:len(quoted)-1] != name {
		return quoted
	}
	return name
}

// Message renders an error without its path, which is shown beside it, and
// without values that are objects or lists, which would bury the text.
func Message(err *field.Error) string {
	switch err.BadValue.(type) {
	case unknown, said:
		return err.Detail
	}
	detail := err.Detail
	if _, after, ok := strings.Cut(detail, " in body "); ok {
		detail = after // the OpenAPI validator repeats the path
	}
	switch err.Type {
	case field.ErrorTypeRequired:
		if detail == "" {
			return "required, but missing"
		}
		return "required, but missing: " + detail
	case field.ErrorTypeTypeInvalid:
		if want, got, ok := strings.Cut(detail, ": \""); ok {
			return want + ", not " + strings.TrimSuffix(got, "\"")
		}
		return detail
	case field.ErrorTypeInvalid, field.ErrorTypeForbidden:
		if words := patternInWords(err, detail); words != "" {
			return words
		}
		if detail != "" && !showable(err.BadValue) {
			return detail
		}
	}
	short := *err
	short.Detail = detail
	return short.ErrorBody()
}

// showable reports values that say something on a line. CEL gives the name of
// the type for what is none.
func showable(value any) bool {
	switch value := value.(type) {
	case string:
		return value != "object" && value != "array"
	case bool, int64, int32, int, float64:
		return true
	}
	return false
}

// byText orders errors that come from walking a map.
func byText(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) }
