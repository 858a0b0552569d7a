package view

import (
	"maps"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TestTroubledCounts protects what alerts stand on: each object counts once, for the reason
// that it has now, and no more when it is in order or gone.
func TestTroubledCounts(t *testing.T) {
	troubled := NewTroubled()
	a, b := object.Key{Kind: kind.HTTPRoute, Name: object.Name{Name: "a"}}, object.Key{Kind: kind.HTTPRoute, Name: object.Name{Name: "b"}}
	bad := func(reason string) Summary { return Summary{State: reason, Message: "why"} }
	for i, step := range []struct {
		do   func(*[]StateChange)
		want map[Trouble]int
	}{
		{func(out *[]StateChange) { troubled.take(a, bad("X"), out); troubled.take(b, bad("X"), out) }, map[Trouble]int{{"HTTPRoute", "X"}: 2}},
		{func(out *[]StateChange) { troubled.take(a, bad("Y"), out) }, map[Trouble]int{{"HTTPRoute", "X"}: 1, {"HTTPRoute", "Y"}: 1}},
		{func(out *[]StateChange) { troubled.take(a, bad(pending), out) }, map[Trouble]int{{"HTTPRoute", "X"}: 1, {"HTTPRoute", "Y"}: 1}},
		{func(out *[]StateChange) { troubled.take(a, Summary{State: "Accepted", OK: true}, out) }, map[Trouble]int{{"HTTPRoute", "X"}: 1}},
		{func(*[]StateChange) { troubled.set(b, "") }, map[Trouble]int{}},
	} {
		var out []StateChange
		step.do(&out)
		if got := troubled.Counts(); !maps.Equal(got, step.want) {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}
