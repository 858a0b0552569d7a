package view

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

func refusedItem(name string, sum Summary) Item {
	return Item{
		TypeMeta: metav1.TypeMeta{Kind: "HTTPRoute"}, Metadata: ItemMeta{Namespace: "ns", Name: name}, Summary: sum,
		kind: kind.All.Of(kind.HTTPRoute),
	}
}

func refusedKey(name string) object.Key {
	return object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "ns", Name: name}}
}

// TestOldVersionIsTold protects those who edit: each object of which an old version is in
// force says so, also where the file can't be understood at all, and where something else is
// to be said.
func TestOldVersionIsTold(t *testing.T) {
	v := View{
		Items: []Item{
			refusedItem("well", Summary{State: "Accepted", OK: true}),
			refusedItem("waits", Summary{State: "Pending", Message: "Waiting for a proxy"}),
			refusedItem("bad", Summary{State: "BackendNotFound", Message: "no Service"}),
			refusedItem("other", Summary{State: "Accepted", OK: true}),
		},
		Problems: []source.Problem{{
			File: "a.yaml", Line: 3, Reason: source.Syntax, Message: "not YAML", Stale: true,
			LastValid: []object.Key{refusedKey("well"), refusedKey("waits"), refusedKey("bad")},
		}},
	}
	v.blame()
	for i, want := range []struct{ state, message, trouble string }{
		{"RefusedEdit", "old version in force: a.yaml:3: not YAML", "RefusedEdit"},
		{"Pending", "Waiting for a proxy; old version in force: a.yaml:3: not YAML", "RefusedEdit"},
		{"BackendNotFound", "no Service; old version in force: a.yaml:3: not YAML", "BackendNotFound"},
		{"Accepted", "", ""},
	} {
		sum := v.Items[i].Summary
		trouble, _, _ := sum.Trouble()
		if sum.State != want.state || sum.Message != want.message || trouble != want.trouble {
			t.Errorf("%s: %+v, trouble %q; want %+v", v.Items[i].Metadata.Name, sum, trouble, want)
		}
	}
}

// TestOldVersionSince protects those who wonder since when what they wrote is not in force:
// the time is that of the first edit that was refused, and stays.
func TestOldVersionSince(t *testing.T) {
	start := time.Date(2026, 11, 22, 10, 42, 0, 0, time.Local)
	transitions := NewTransitions()
	problem := source.Problem{Key: refusedKey("a"), File: "a.yaml", Line: 3, Reason: source.Invalid, Message: "wrong", Stale: true}
	message := func(now time.Time) string {
		v := View{Items: []Item{refusedItem("a", Summary{State: "Accepted", OK: true})}, Problems: []source.Problem{problem}}
		v.blame()
		transitions.Fill(&v, now)
		return v.Items[0].Summary.Message
	}
	transitions.outdate("a.yaml", []source.Problem{problem}, start)
	problem.Message = "wrong in another way"
	transitions.outdate("a.yaml", []source.Problem{problem}, start.Add(time.Hour))
	for now, want := range map[time.Duration]string{
		2 * time.Hour:  "old version in force since 10:42: line 3: wrong in another way",
		30 * time.Hour: "old version in force since 22 Nov 10:42: line 3: wrong in another way",
	} {
		if have := message(start.Add(now)); have != want {
			t.Errorf("after %s: %q, want %q", now, have, want)
		}
	}

	transitions.outdate("a.yaml", nil, start.Add(3*time.Hour))
	if len(transitions.outdated) > 0 {
		t.Errorf("what is mended is remembered: %v", transitions.outdated)
	}
	// What was so before the process started has no time.
	transitions.outdate("a.yaml", []source.Problem{problem}, time.Time{})
	if have := message(start); have != "old version in force: line 3: wrong in another way" {
		t.Error(have)
	}
}
