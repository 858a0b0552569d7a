package migrate

import (
	"cmp"
	"slices"
)

// Verdict says what became of something.
type Verdict string

// The verdicts, the best first.
const (
	Converted   Verdict = "Converted"
	NotNeeded   Verdict = "NotNeeded"   // the result does the same without it
	Differs     Verdict = "Differs"     // it is converted, and something is not as it was
	NotPossible Verdict = "NotPossible" // it is left out
)

// Finding is what there is to say of one annotation, or of an Ingress.
type Finding struct {
	Ingress    string  `json:"ingress,omitempty"` // namespace/name; empty for the controller's configuration
	Annotation string  `json:"annotation,omitempty"`
	Value      string  `json:"value,omitempty"`
	Verdict    Verdict `json:"verdict"`
	// Opens says that something is let through which was not before.
	Opens   bool   `json:"opens,omitempty"`
	Message string `json:"message,omitempty"`
	// host is the one of which others are let through too; empty for none.
	host string
}

// Report is what there is to say, by Ingress.
type Report []Finding

// Opens reports whether the result lets something through which was not let through before.
func (r Report) Opens() bool { return slices.ContainsFunc(r, func(f Finding) bool { return f.Opens }) }

// Count is how many findings have a verdict.
func (r Report) Count(v Verdict) (n int) {
	for _, f := range r {
		if f.Verdict == v {
			n++
		}
	}
	return n
}

func (r Report) sort() {
	slices.SortStableFunc(r, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Ingress, b.Ingress), cmp.Compare(a.Annotation, b.Annotation), cmp.Compare(a.Message, b.Message))
	})
}
