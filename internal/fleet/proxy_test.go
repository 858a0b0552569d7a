package fleet_test

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/fleet"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// TestJoin protects that a proxy has one row: the younger of two sessions where it has gone over to
// another controller, and one without a session where only its pod is known.
func TestJoin(t *testing.T) {
	t.Parallel()
	then := time.Now()
	at := func(replica string, since time.Time) fleet.List {
		return fleet.List{Proxies: []fleet.Proxy{{Gateway: "shop/web", Pod: "a", Replica: replica, Connected: since, State: fleet.Current}}}
	}
	pods := []fleet.Pod{
		{Gateway: "shop/web", Name: "a", Node: "one", Ready: true},
		{Gateway: "shop/web", Name: "b", Ready: true},
		{Gateway: "shop/web", Name: "c", Draining: true},
	}
	got := fleet.Join([]fleet.List{at("new", then.Add(time.Second)), at("old", then)}, pods)
	if len(got) != 3 {
		t.Fatalf("%d rows: %+v", len(got), got)
	}
	for i, want := range []fleet.State{fleet.Current, fleet.Disconnected, fleet.Draining} {
		if got[i].State != want {
			t.Errorf("proxy %s is %s, not %s", got[i].Pod, got[i].State, want)
		}
	}
	if got[0].Replica != "new" || got[0].Node != "one" {
		t.Errorf("a proxy with two sessions: %+v", got[0])
	}
}

// TestLastGood protects a proxy that has just connected from being said to lack what nobody has refused.
func TestLastGood(t *testing.T) {
	t.Parallel()
	of := func(refusals bool) fleet.State {
		s := xds.SessionInfo{Gateway: "shop/web", Pod: "a", Connected: time.Now(), Wanted: "1", Acknowledged: "2", Refusals: refusals}
		return fleet.Of("", []xds.SessionInfo{s}, nil).Proxies[0].State
	}
	if got := of(false); got != fleet.Updating {
		t.Errorf("without a refusal it is %s", got)
	}
	if got := of(true); got != fleet.LastGood {
		t.Errorf("with a refusal of another proxy it is %s", got)
	}
}
