package translate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// matchKey is a match in a form that compares.
type matchKey struct {
	path        ir.PathMatch
	method      string
	methodRegex bool
	values      string // headers and query parameters
}

func keyOf(m *ir.Match) matchKey {
	k := matchKey{path: m.Path, method: m.Method, methodRegex: m.MethodRegex}
	if len(m.Headers)+len(m.Query) > 0 {
		k.values = fmt.Sprintf("%q %q", sortedValues(m.Headers), sortedValues(m.Query))
	}
	return k
}

func sortedValues(list []ir.ValueMatch) []string {
	out := make([]string, len(list))
	for i, m := range list {
		out[i] = fmt.Sprintf("%s %t %s", m.Name, m.Regex, m.Value)
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}

// shadows finds the rules that never get a request, since one before them has the same match.
func shadows(rules []*ir.Rule) (out []ir.Shadow) {
	if len(rules) < 2 {
		return nil
	}
	first := make(map[matchKey]ir.Source, len(rules))
	for _, r := range rules {
		if r.Match.Wide {
			continue
		}
		k := keyOf(&r.Match)
		if by, taken := first[k]; taken {
			out = append(out, ir.Shadow{Rule: r.Source, By: by})
			continue
		}
		first[k] = r.Source
	}
	return out
}
