package view

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TestTroubledCounts protects what alerts stand on: each object counts once, for the reason
// that it has now, and no more when it only waits, is in order or gone.
func TestTroubledCounts(t *testing.T) {
	troubled := NewTroubled()
	a, b := object.Key{Kind: kind.HTTPRoute, Name: object.Name{Name: "a"}}, object.Key{Kind: kind.HTTPRoute, Name: object.Name{Name: "b"}}
	bad, none := func(reason string) Summary { return Summary{State: reason, Message: "why"} }, metav1.Condition{}
	for i, step := range []struct {
		do   func(*[]StateChange)
		want map[Trouble]int
	}{
		{func(out *[]StateChange) { troubled.take(a, bad("X"), none, out); troubled.take(b, bad("X"), none, out) }, map[Trouble]int{{"HTTPRoute", "X"}: 2}},
		{func(out *[]StateChange) { troubled.take(a, bad("Y"), none, out) }, map[Trouble]int{{"HTTPRoute", "X"}: 1, {"HTTPRoute", "Y"}: 1}},
		{func(out *[]StateChange) { troubled.take(a, bad(pending), none, out) }, map[Trouble]int{{"HTTPRoute", "X"}: 1}},
		{func(out *[]StateChange) { troubled.take(a, bad(pending), none, out) }, map[Trouble]int{{"HTTPRoute", "X"}: 1}},
		{func(out *[]StateChange) { troubled.take(a, bad("Y"), none, out) }, map[Trouble]int{{"HTTPRoute", "X"}: 1, {"HTTPRoute", "Y"}: 1}},
		{func(out *[]StateChange) { troubled.take(a, bad(pending), none, out) }, map[Trouble]int{{"HTTPRoute", "X"}: 1}},
		{func(out *[]StateChange) { troubled.take(a, Summary{State: "Accepted", OK: true}, none, out) }, map[Trouble]int{{"HTTPRoute", "X"}: 1}},
		{func(*[]StateChange) { troubled.set(b, "") }, map[Trouble]int{}},
	} {
		var out []StateChange
		step.do(&out)
		if got := troubled.Counts(); !maps.Equal(got, step.want) {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}

// TestNotesAreCounted protects whoever relies on alerts: what is worth an Event needs a person
// although the object serves, or only waits.
func TestNotesAreCounted(t *testing.T) {
	rollout := condition.NoteRollout(0, 2, "Pod default/web can't be scheduled: 0/3 nodes are available")
	deleted := condition.NoteClassDeleted("web")
	web := object.Key{Kind: kind.Gateway, Name: object.Name{Namespace: "default", Name: "web"}}
	class := object.Key{Kind: kind.GatewayClass, Name: object.Name{Name: "web"}}
	gateway := func(accepted, programmed metav1.Condition) any {
		return &gwv1.GatewayStatus{Conditions: []metav1.Condition{accepted, programmed}}
	}
	for name, test := range map[string]struct {
		of     object.Key
		status any
		reason string // empty for none
		logs   string
	}{
		"in order":          {web, gateway(condition.GatewayAccepted(), condition.GatewayProgrammed()), "", ""},
		"waits":             {web, gateway(condition.GatewayAccepted(), condition.GatewayPending("Waiting for a proxy to connect")), "", ""},
		"a stuck rollout":   {web, gateway(condition.GatewayAccepted(), condition.Noted(condition.GatewayProgrammed(), rollout)), "RolloutStuck", "A proxy has acknowledged the configuration; " + rollout},
		"no proxy can run":  {web, gateway(condition.GatewayAccepted(), condition.Noted(condition.GatewayPending("It waits"), rollout)), "RolloutStuck", "It waits; " + rollout},
		"its class goes":    {web, gateway(condition.Noted(condition.GatewayAccepted(), deleted), condition.GatewayProgrammed()), "ClassDeleted", "The Gateway is valid; " + deleted},
		"a class that goes": {class, &gwv1.GatewayClassStatus{Conditions: []metav1.Condition{condition.Noted(condition.ClassAccepted(), deleted)}}, "ClassDeleted", "Gateways of this class are served; " + deleted},
		"worse than a note": {web, gateway(condition.GatewayAccepted(), condition.Noted(condition.GatewayAddressNotAssigned("none"), rollout)), "AddressNotAssigned", "none; " + rollout},
	} {
		troubled := NewTroubled()
		changes := troubled.TakeStatuses(kind.All, maps.All(map[object.Key]any{test.of: test.status}))
		counts, told := map[Trouble]int{}, []StateChange(nil)
		if test.reason != "" {
			counts[Trouble{test.of.Kind.Name(), test.reason}] = 1
			told = []StateChange{{Object: test.of.String(), Reason: test.reason, Message: test.logs}}
		}
		if got := troubled.Counts(); !maps.Equal(got, counts) || !slices.Equal(changes, told) {
			t.Errorf("%s: %v, told %+v; want %v, %+v", name, got, changes, counts, told)
		}
	}
}
