package object_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Keys keep the form that people and clients of the admin interface know.
func TestKeyText(t *testing.T) {
	for _, test := range []struct {
		key        object.Key
		text, json string
	}{
		{object.Key{}, " ", `{"kind":"","name":""}`},
		{
			object.Key{Kind: object.KindOf("", "Service"), Name: object.Name{Namespace: "ns", Name: "a"}},
			"Service ns/a", `{"kind":"Service","namespace":"ns","name":"a"}`,
		},
		{
			object.Key{Kind: object.KindOf("gateway.networking.k8s.io", "GatewayClass"), Name: object.Name{Name: "c"}},
			"GatewayClass c", `{"group":"gateway.networking.k8s.io","kind":"GatewayClass","name":"c"}`,
		},
	} {
		if got := test.key.String(); got != test.text {
			t.Errorf("String() = %q, want %q", got, test.text)
		}
		text, err := json.Marshal(test.key)
		if err != nil || string(text) != test.json {
			t.Errorf("JSON of %v is %s (%v), want %s", test.key, text, err, test.json)
		}
		var back object.Key
		if err := json.Unmarshal(text, &back); err != nil || back != test.key {
			t.Errorf("%s reads as %v (%v), want %v", text, back, err, test.key)
		}
	}
}

// A name in a namespace reads as it was written, and nothing else is taken for one.
func TestParseName(t *testing.T) {
	for _, want := range []object.Name{{Namespace: "ns", Name: "a"}, {Namespace: "n-s", Name: "a.b-c"}} {
		if got, ok := object.ParseName(want.String()); !ok || got != want {
			t.Errorf("ParseName(%q) = %v, %v", want.String(), got, ok)
		}
	}
	for _, text := range []string{object.Name{}.String(), object.Name{Name: "c"}.String(), "", "a", "ns/", "ns/a/b"} {
		if got, ok := object.ParseName(text); ok || !got.IsZero() {
			t.Errorf("ParseName(%q) = %v, %v, want none", text, got, ok)
		}
	}
}

// Kinds of the same name in two groups are two kinds, and have an order.
func TestKinds(t *testing.T) {
	list := []object.Kind{object.KindOf("b", "X"), object.KindOf("a", "X"), {}, object.KindOf("z", "A")}
	slices.SortFunc(list, object.Kind.Compare)
	want := []object.Kind{{}, object.KindOf("z", "A"), object.KindOf("a", "X"), object.KindOf("b", "X")}
	if !slices.Equal(list, want) {
		t.Errorf("sorted: %v, want %v", list, want)
	}
	if object.KindOf("a", "X") == object.KindOf("b", "X") {
		t.Error("the group is no part of the kind")
	}
}
