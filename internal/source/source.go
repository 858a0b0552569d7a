package source

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/gatehouse-dev/gatehouse/internal/foreign"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// KeyOf returns the key of an object whose TypeMeta is filled in.
func KeyOf(o Object) object.Key {
	gvk := o.GetObjectKind().GroupVersionKind()
	return object.Key{
		Kind: object.KindOf(gvk.Group, gvk.Kind),
		Name: object.Name{Namespace: o.GetNamespace(), Name: o.GetName()},
	}
}

// Object is a decoded, defaulted and validated object. A source does not change it
// after it has passed it on, and neither does anybody else.
type Object = kind.Object

// Reason says what kind of thing is wrong with an input.
type Reason string

// The reasons for which a source reports a problem.
const (
	Syntax    Reason = "Syntax"    // not YAML or JSON
	Invalid   Reason = "Invalid"   // refused by the kind's schema or CEL rules
	Unknown   Reason = "Unknown"   // a kind that Gatehouse does not read
	Duplicate Reason = "Duplicate" // defined earlier; this one is not used
	Unread    Reason = "Unread"    // a file or directory that can't be read
	NotServed Reason = "NotServed" // whoever should serve objects doesn't
	NoEffect  Reason = "NoEffect"  // another implementation's policy, for what is served here
	// NotConverted is of an Ingress that is refused, or a part of it that has no effect.
	NotConverted Reason = "NotConverted"
)

// Problem says what is wrong with an input, and where a person should look.
type Problem struct {
	Key     object.Key `json:"object,omitzero"` // zero when the text can't be attributed to an object
	File    string     `json:"file,omitempty"`  // as the user named it; "-" for standard input
	Line    int        `json:"line,omitempty"`  // 1-based; 0 when unknown
	Field   string     `json:"field,omitempty"` // field path such as spec.rules[0].matches; empty when unknown
	Reason  Reason     `json:"reason"`
	Message string     `json:"message"`
	// Stale is true when an earlier valid version of the object stays in force.
	Stale bool `json:"stale,omitempty"`
	// LastValid are the objects that the text may be about, where it can't be read: their last
	// valid versions stay in force.
	LastValid []object.Key `json:"lastValid,omitempty"`
}

// Equal reports whether two problems say the same.
func (p Problem) Equal(o Problem) bool {
	return p.Key == o.Key && p.File == o.File && p.Line == o.Line && p.Field == o.Field && p.Reason == o.Reason &&
		p.Message == o.Message && p.Stale == o.Stale && slices.Equal(p.LastValid, o.LastValid)
}

// Outdated yields the objects of which an earlier version is in force for this problem.
func (p Problem) Outdated(yield func(object.Key) bool) {
	if p.Stale && p.Reason != Duplicate && !p.Key.IsZero() && !yield(p.Key) {
		return
	}
	for _, key := range p.LastValid {
		if !yield(key) {
			return
		}
	}
}

// Breaks returns the object that the problem is about where a file may have had it, but for
// the problem.
func (p Problem) Breaks() (object.Key, bool) {
	if p.Stale || p.File == "" || p.Reason == Duplicate || p.Reason == Unread {
		return object.Key{}, false
	}
	return p.Key, !p.Key.IsZero()
}

// Refuses reports whether the problem's object is refused: what is in force of it, if anything
// is, only stands in for it. Unknown is also said of objects that are in force, where no file is
// at fault.
func (p Problem) Refuses() bool {
	if p.Key.IsZero() || p.Stale {
		return false
	}
	return p.Reason == Invalid || p.File != "" && (p.Reason == Unknown || p.Reason == Syntax)
}

// MistakesError says that files have mistakes, and that nothing is known to serve in their place.
type MistakesError []Problem

// Error lists them, a line each.
func (e MistakesError) Error() string {
	var b strings.Builder
	b.WriteString("the files have mistakes, and of no earlier run anything is kept; mend them, or serve the rest with --lenient:")
	for _, p := range e {
		b.WriteString("\n" + p.Error())
	}
	return b.String()
}

// Place is where the problem is, as compilers write it: file:line.
func (p Problem) Place() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Also joins a further sentence to a message.
func Also(message, more string) string {
	if strings.HasSuffix(message, "?") {
		return message + " " + strings.ToUpper(more[:1]) + more[1:]
	}
	return message + "; " + more
}

// Error renders the problem on one line, file:line first, as compilers do. File
// names and texts are the user's: control characters in them are replaced, since
// this is printed on terminals.
func (p Problem) Error() string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, p.text())
}

func (p Problem) text() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.Place())
		b.WriteString(": ")
	}
	if p.Key != (object.Key{}) {
		b.WriteString(p.Key.String())
		b.WriteString(": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Place is the line of a file at which an object begins.
type Place struct {
	Key  object.Key
	Line int // 1-based
}

// Batch is a set of changes that belong together: everything that one save, one
// symlink swap or one watch event brought. Consumers apply it as one transaction.
type Batch struct {
	Set     []Object
	Deleted []object.Key
	// Problems replaces, per file, everything said earlier of that file; an empty
	// list takes back what was said.
	Problems map[string][]Problem
	// Places replaces, per file, everything said earlier of what stands in that file.
	Places map[string][]Place
	// Foreign replaces, per file, everything said earlier of other implementations' policies there. Those
	// of a cluster have a key of their own each.
	Foreign map[string][]foreign.Policy
	// Unread says why no object of a kind is read. An empty reason takes that back.
	Unread map[string]string
}

// Empty reports whether the batch says nothing.
func (b Batch) Empty() bool {
	return len(b.Set) == 0 && len(b.Deleted) == 0 && len(b.Problems) == 0 && len(b.Places) == 0 && len(b.Foreign) == 0 && len(b.Unread) == 0
}
