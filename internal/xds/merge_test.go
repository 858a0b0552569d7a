package xds

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

func refusal(name, part, version string, old bool) Rejected {
	return Rejected{Ref: Ref{Type: envoy.Routes, Name: name}, Part: part, Version: version, Message: "bad", ServingOld: old}
}

// TestMergeStates says what the proxies of several servers say together.
func TestMergeStates(t *testing.T) {
	a := State{
		Connected: 2, Synced: true, Behind: 1, BehindWhy: "Pod a/c", Listeners: map[string]string{"http-80": "1", "tls-443": "1"},
		Rejected:   []Rejected{refusal("http-80", "b", "1", true), refusal("http-80", "c", "1", true)},
		OtherForms: map[string]bool{"http-80": false, "http-81": true},
	}
	b := State{
		Connected: 1, Behind: 1, BehindWhy: "Pod a/b", Listeners: map[string]string{"http-80": "2"},
		Rejected:   []Rejected{refusal("http-80", "a", "1", true), refusal("http-80", "b", "1", false)},
		OtherForms: map[string]bool{"http-80": true},
	}
	deserted := State{Synced: true, OtherForms: map[string]bool{"http-82": true}, Rejected: []Rejected{refusal("http-80", "z", "1", false)}}
	want := State{
		Connected: 3, Synced: true, Behind: 2, BehindWhy: "Pod a/b", Listeners: map[string]string{"http-80": "2", "tls-443": "1"},
		Rejected:   []Rejected{refusal("http-80", "a", "1", true), refusal("http-80", "b", "1", false), refusal("http-80", "c", "1", true)},
		OtherForms: map[string]bool{"http-80": true, "http-81": true},
	}
	for _, list := range [][]State{{a, b, deserted}, {deserted, b, a}, {b, deserted, a, {}}} {
		if d := cmp.Diff(want, MergeStates(list...)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
	if d := cmp.Diff(deserted.Rejected, MergeStates(State{}, deserted).Rejected); d != "" {
		t.Errorf("without any proxy, what was said last is gone:\n%s", d)
	}
}

// TestStateJSON says that a state can be told to another process.
func TestStateJSON(t *testing.T) {
	want := State{
		Connected: 1, Synced: true, Listeners: map[string]string{"http-80": "1"},
		Rejected:   []Rejected{refusal("http-80", "a", "1", true), {Ref: Ref{Type: envoy.Secrets, Name: "ns/s"}, Version: "2", Message: "worse"}},
		OtherForms: map[string]bool{"http-80": true},
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got State
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if err := json.Unmarshal([]byte(`{"rejected": [{"type": "moon"}]}`), &got); err == nil {
		t.Error("an unknown type is read")
	}
}

// What has been taken in is told however many updates there are until then.
func TestMergeTookForms(t *testing.T) {
	took := func(forms map[string]bool) []Update { return []Update{{Gateway: gw, TookForms: forms}} }
	first := took(map[string]bool{"a": true, "b": false})
	all := Merge(Merge(first, took(map[string]bool{"a": false, "b": true, "c": false})), took(nil))
	if d := cmp.Diff(took(map[string]bool{"a": true, "b": true, "c": false}), all); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if first[0].TookForms["b"] {
		t.Error("what was merged has changed")
	}
}

// What comes after the end of a Gateway is the next one's, and what came before the end is over: the end may be sent
// alone.
func TestMergeAfterTheEnd(t *testing.T) {
	other := Update{Gateway: named("ns/other"), Set: []*envoy.Resource{envoy.EmptyEndpoints("x")}}
	set := func(name string) Update {
		return Update{Gateway: named("ns/g"), Set: []*envoy.Resource{envoy.EmptyEndpoints(name)}}
	}
	all := Merge(Merge([]Update{set("a")}, []Update{{Gateway: named("ns/g"), Gone: true}}), []Update{set("b")})
	all = Merge(all, []Update{set("c")})
	beside := Merge([]Update{{Gateway: named("ns/g"), Gone: true}, other}, []Update{set("a")})
	if len(beside) != 3 || beside[1].Gateway != named("ns/g") || beside[2].Gateway != named("ns/other") {
		t.Errorf("a Gateway that comes back is apart from its end: %+v", beside)
	}
	if len(all) != 2 || !all[0].Gone || len(all[1].Set) != 2 {
		t.Errorf("merged into %+v", all)
	}
}
