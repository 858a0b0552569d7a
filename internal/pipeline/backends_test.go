package pipeline

import (
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Proxies get the clusters of whatever a request may reach, at whichever level that is
// said, each once.
func TestBackendsOfHost(t *testing.T) {
	named := ir.NamedBackend
	filters := func(mirror, auth string) ir.Filters {
		return ir.Filters{Mirrors: []ir.Mirror{{Backend: named(mirror)}}, Auth: &ir.Auth{Backend: named(auth)}}
	}
	around, own := filters("a", "b"), filters("c", "b")
	rule := &ir.Rule{Filters: filters("d", "e"), Backends: []ir.WeightedBackend{{Backend: named("f")}, {}, {Backend: named("c")}}}
	other := &ir.Rule{Backends: []ir.WeightedBackend{{Backend: named("g")}}}
	h := &ir.Host{Around: &around, Filters: &own, Rules: []*ir.Rule{rule, other}}
	var got []string
	backendsOf(h, func(k ir.BackendKey) { got = append(got, k.String()) })
	slices.Sort(got)
	if want := []string{"a", "b", "c", "d", "e", "f", "g"}; !slices.Equal(got, want) {
		t.Errorf("a host's backends are %q, want %q", got, want)
	}
	for name, want := range map[string][2]bool{"a": {true, true}, "b": {true, true}, "d": {true, false}, "f": {true, false}, "g": {false, true}, "x": {}} {
		if got := [2]bool{refersTo(h, rule, named(name)), refersTo(h, other, named(name))}; got != want {
			t.Errorf("the rules refer to %s: %v, want %v", name, got, want)
		}
	}
}
