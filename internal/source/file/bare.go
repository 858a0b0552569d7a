package file

import (
	"fmt"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// A route with a rule that neither filters requests nor sends them anywhere is valid, and
// nobody wants it: they are answered with 500, or, if it has no match either, fall to wider
// routes. A file of which only the beginning has been written yet can look like it, and what
// the route guarded would be open. So it takes the place of a version without such a rule only
// if that goes first.

// bareRule returns the first rule of a route that neither filters requests nor sends them
// anywhere; -1 for none, or if it isn't a route that may have such rules.
func bareRule(o source.Object) int {
	switch o := o.(type) {
	case *gwv1.HTTPRoute:
		for i := range o.Spec.Rules {
			if rule := &o.Spec.Rules[i]; len(rule.BackendRefs)+len(rule.Filters) == 0 {
				return i
			}
		}
	case *gwv1.GRPCRoute:
		for i := range o.Spec.Rules {
			if rule := &o.Spec.Rules[i]; len(rule.BackendRefs)+len(rule.Filters) == 0 {
				return i
			}
		}
		if len(o.Spec.Rules) == 0 {
			return 0
		}
	}
	return -1
}

// matchesAll reports whether a route has no match, or its first one is of all paths, as that of
// a route without rules.
func matchesAll(o source.Object) bool {
	r, ok := o.(*gwv1.HTTPRoute)
	if !ok || len(r.Spec.Rules) == 0 || len(r.Spec.Rules[0].Matches) == 0 {
		return true
	}
	path := r.Spec.Rules[0].Matches[0].Path
	return path == nil || path.Value == nil || *path.Value == "/"
}

// dubious reports whether a definition may not take the place of an earlier one.
func (d *definition) dubious() bool { return d.object == nil || bareRule(d.object) >= 0 }

// refuseBare refuses a valid definition whose route has a rule that goes nowhere, unless the
// version before had one too. What holds the place of one that never was valid goes on holding it.
func (d *definition) refuseBare(was *definition) {
	i := bareRule(d.object)
	if i < 0 || was.object != nil && bareRule(was.object) >= 0 || was.object == nil && !matchesAll(d.object) {
		return
	}
	d.refused = &refusal{key: d.key(), faults: []fault{{
		line: int(d.line), field: fmt.Sprintf("spec.rules[%d]", i), reason: source.Invalid,
		message: "has neither backendRefs nor filters, as if the file were half-written: write where its requests go, or remove the rule; to have them answered with 500, remove the route first",
	}}}
	d.object = nil
}
