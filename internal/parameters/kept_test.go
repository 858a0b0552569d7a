package parameters

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TestKeptIsBounded protects the ConfigMap from more than it takes: the largest are
// left out.
func TestKeptIsBounded(t *testing.T) {
	all := map[object.Name]*Kept{}
	for i, size := range []int{10, 4000, 20, 30} {
		name := object.Name{Namespace: "ns", Name: fmt.Sprint("gw-", i)}
		all[name] = &Kept{UID: "uid", Settings: &v1alpha1.Settings{AccessLog: []v1alpha1.AccessLog{{Text: new(strings.Repeat("x", size))}}}}
	}
	text, left, err := Encode(all, 1000)
	if err != nil || len(text) > 1000 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	if diff := cmp.Diff([]object.Name{{Namespace: "ns", Name: "gw-1"}}, left); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	delete(all, left[0])
	got, err := Decode(text)
	if diff := cmp.Diff(all, got); diff != "" || err != nil {
		t.Errorf("what comes back: %v (-want +got):\n%s", err, diff)
	}
	if text, left, err := Encode(nil, 1000); text != "" || left != nil || err != nil {
		t.Errorf("nothing is %q, %v, %v", text, left, err)
	}
}
