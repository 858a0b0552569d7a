package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// However they come, the first names stay, in their order.
func TestAmong(t *testing.T) {
	var first []object.Name
	for _, name := range []string{"d", "b", "e", "a", "c", "f"} {
		first = among(first, object.Name{Namespace: "n", Name: name}, 3)
	}
	if diff := cmp.Diff([]object.Name{{Namespace: "n", Name: "a"}, {Namespace: "n", Name: "b"}, {Namespace: "n", Name: "c"}}, first); diff != "" {
		t.Errorf("first names (-want +got):\n%s", diff)
	}
}
