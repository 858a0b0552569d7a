package source

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Whatever is set and deleted in whatever order, the first source that defines an
// object wins, and each change says so.
func TestMergeFirstSourceWins(t *testing.T) {
	gateway := func(source string) *gwv1.Gateway {
		return &gwv1.Gateway{
			TypeMeta:   metav1.TypeMeta{APIVersion: "gateway.networking.k8s.io/v1", Kind: "Gateway"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g", Labels: map[string]string{"of": source}},
		}
	}
	key := KeyOf(gateway(""))
	var told []string
	m := NewMerge(2)
	m.Shadowed = func(_ object.Key, by, from int, begins bool) {
		told = append(told, fmt.Sprintln(from, "by", by, begins))
	}
	for i, step := range []struct {
		from    int
		set     string // empty deletes
		want    string // what is used of it; empty for nothing new, - for deleted
		says    string
		ownedBy int
	}{
		{1, "second", "second", "", 1},
		{0, "first", "first", "1 by 0 true\n", 0},
		{1, "second", "", "", 0}, // a change of what isn't used is no change
		{1, "", "", "1 by 0 false\n", 0},
		{1, "second", "", "1 by 0 true\n", 0},
		{0, "first", "first", "", 0},
		{0, "", "second", "1 by 1 false\n", 1},
		{0, "", "", "", 1},
		{1, "", "-", "", -1},
		{1, "", "", "", -1},
	} {
		told = nil
		b := Batch{Deleted: []object.Key{key}}
		if step.set != "" {
			b = Batch{Set: []Object{gateway(step.set)}}
		}
		got := m.Take(step.from, b)
		used := ""
		if len(got.Deleted) > 0 {
			used = "-"
		}
		for _, o := range got.Set {
			used += o.GetLabels()["of"]
		}
		if used != step.want || m.Owner(key) != step.ownedBy {
			t.Errorf("step %d: %q of source %d is used, want %q of %d", i, used, m.Owner(key), step.want, step.ownedBy)
		}
		says := ""
		for _, s := range told {
			says += s
		}
		if diff := cmp.Diff(step.says, says); diff != "" {
			t.Errorf("step %d: %s", i, diff)
		}
	}
	if len(m.owners) != 0 {
		t.Errorf("%d objects are remembered that nobody defines", len(m.owners))
	}
}
