package kind

import (
	"iter"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Status is how the status of a kind is reached. The status itself is always a pointer
// to its Go type; nil is none.
//
// A status has one of two forms. A whole one has conditions of the object, and perhaps
// of parts of it, and one controller writes it. A shared one is a list of entries, each
// of which is one controller's and about one parent or ancestor.
type Status struct {
	of    func(Object) any
	empty func() any
	clone func(any) any
	// visit calls yield with every list of conditions, that of the whole object first.
	visit func(status any, yield func(place string, list *[]metav1.Condition))
	// Of shared statuses; the functions are nil for others.
	entries func(any) []Entry
	join    func([]Entry) any
	most    int
	// Initial are the conditions that the API server gives to a new object, with which a
	// controller leaves an object of which it was in charge. Without any, it leaves the
	// status as it is.
	Initial []metav1.Condition
}

// Entry is what one controller says of an object with respect to one parent or ancestor.
type Entry struct {
	Controller gwv1.GatewayController
	Ref        gwv1.ParentReference
	Conditions []metav1.Condition
}

// EntryFields are where a Go type of entries has the fields of Entry.
type EntryFields struct {
	Controller *gwv1.GatewayController
	Ref        *gwv1.ParentReference
	Conditions *[]metav1.Condition
}

// statusPointer is a pointer to a status.
type statusPointer[S any] interface {
	*S
	DeepCopy() *S
}

// Whole is a status with conditions. visit calls yield with every list of them, that of
// the whole object first, under the empty place.
func Whole[O Object, S any, P statusPointer[S]](of func(O) P, visit func(status P, yield func(place string, list *[]metav1.Condition))) *Status {
	s := statusIn[O, S](of)
	s.visit = func(status any, yield func(string, *[]metav1.Condition)) { visit(status.(P), yield) }
	return s
}

// Shared is a status of entries. list is where they are in it, fields is where an entry
// has what all entries have, and most is how many of them the API takes.
func Shared[O Object, S, E any, P statusPointer[S]](of func(O) P, most int, list func(P) *[]E, fields func(*E) EntryFields) *Status {
	return converted(of, most, list,
		func(e *E) Entry {
			f := fields(e)
			return Entry{*f.Controller, *f.Ref, *f.Conditions}
		},
		func(e Entry, to *E) {
			f := fields(to)
			*f.Controller, *f.Ref, *f.Conditions = e.Controller, e.Ref, e.Conditions
		})
}

// converted is Shared for entries that have what all have in types of their own: read makes an Entry of one, and
// write one of an Entry.
func converted[O Object, S, E any, P statusPointer[S]](of func(O) P, most int, list func(P) *[]E, read func(*E) Entry, write func(Entry, *E)) *Status {
	s := statusIn[O, S](of)
	s.most = most
	s.entries = func(status any) []Entry {
		from := *list(status.(P))
		out := make([]Entry, len(from))
		for i := range from {
			out[i] = read(&from[i])
		}
		return out
	}
	s.join = func(entries []Entry) any {
		out := P(new(S))
		to := make([]E, len(entries))
		for i, e := range entries {
			write(e, &to[i])
		}
		*list(out) = to
		return out
	}
	s.visit = func(status any, yield func(string, *[]metav1.Condition)) {
		for _, e := range s.entries(status) {
			yield(placeOf(&e.Ref), &e.Conditions)
		}
	}
	return s
}

func statusIn[O Object, S any, P statusPointer[S]](of func(O) P) *Status {
	return &Status{
		of:    func(o Object) any { return of(o.(O)) },
		empty: func() any { return P(new(S)) },
		clone: func(status any) any { return status.(P).DeepCopy() },
	}
}

// Of returns the status within an object, not a copy of it.
func (s *Status) Of(o Object) any { return s.of(o) }

// Copy returns a copy of a status.
func (s *Status) Copy(status any) any { return s.clone(status) }

// IsShared reports whether the status is a list of entries.
func (s *Status) IsShared() bool { return s.entries != nil }

// Conditions returns every list of conditions of a status, with its place: what it is
// about, the same for the same thing in two statuses of the kind.
func (s *Status) Conditions(status any) iter.Seq2[string, []metav1.Condition] {
	return func(yield func(string, []metav1.Condition) bool) {
		if s == nil || status == nil {
			return
		}
		more := true
		s.visit(status, func(place string, list *[]metav1.Condition) { more = more && yield(place, *list) })
	}
}

// WithConditions returns a copy of a whole status in which each list of conditions is
// what change makes of it.
func (s *Status) WithConditions(status any, change func(place string, list []metav1.Condition) []metav1.Condition) any {
	out := s.clone(status)
	s.visit(out, func(place string, list *[]metav1.Condition) { *list = change(place, *list) })
	return out
}

// Saying returns a whole status that has these conditions of the object and nothing
// else.
func (s *Status) Saying(conditions []metav1.Condition) any {
	return s.WithConditions(s.empty(), func(string, []metav1.Condition) []metav1.Condition { return conditions })
}

// Entries returns the entries of a shared status; none for a status that is nil.
func (s *Status) Entries(status any) []Entry {
	if status == nil {
		return nil
	}
	return s.entries(status)
}

// Join returns a shared status of these entries.
func (s *Status) Join(list []Entry) any { return s.join(list) }

// Most is how many entries the API takes.
func (s *Status) Most() int { return s.most }

// Own returns a copy of a status without the entries of other controllers.
func (s *Status) Own(status any, controller gwv1.GatewayController) any {
	out := s.clone(status)
	if !s.IsShared() {
		return out
	}
	return s.join(slices.DeleteFunc(s.entries(out), func(e Entry) bool { return e.Controller != controller }))
}

// placeOf tells the entries of a status apart.
func placeOf(ref *gwv1.ParentReference) string {
	name := string(ref.Name)
	if ref.Namespace != nil {
		name = string(*ref.Namespace) + "/" + name
	}
	if ref.Kind != nil && string(*ref.Kind) != Gateway.Name() {
		name = string(*ref.Kind) + " " + name
	}
	if ref.SectionName != nil {
		name += "#" + string(*ref.SectionName)
	}
	if ref.Port != nil {
		name += ":" + strconv.Itoa(int(*ref.Port))
	}
	return name
}
