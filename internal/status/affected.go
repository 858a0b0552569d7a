package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// affected returns the conditions of an object, or of a section of one, that policies target:
// one for each of their kinds. Reader is whom they are for.
func affected(reader condition.Reader, all []topology.Affecting, in func(section string) bool) (out []metav1.Condition) {
	var kinds []object.Kind
	byKind := map[object.Kind][]object.Name{}
	for _, a := range all {
		if !in(a.Section) {
			continue
		}
		if byKind[a.Kind] == nil {
			kinds = append(kinds, a.Kind)
		}
		byKind[a.Kind] = append(byKind[a.Kind], a.Policies...)
	}
	for _, k := range kinds {
		names := byKind[k]
		slices.SortFunc(names, object.Name.Compare)
		var seen []string
		others := 0
		for _, n := range slices.Compact(names) {
			if reader.Sees(n.Namespace) {
				seen = append(seen, n.String())
			} else {
				others++
			}
		}
		out = append(out, condition.PolicyAffected(k.Name(), seen, others))
	}
	return out
}

// wholly is for policies of whole objects, and anyhow for those of their sections too.
func wholly(section string) bool { return section == "" }
func anyhow(string) bool         { return true }

// exactly is for policies of one section.
func exactly(name string) func(string) bool {
	return func(section string) bool { return section == name }
}
