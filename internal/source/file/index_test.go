package file

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// TestCollisions: keys that share a hash are told apart, and the order of a
// key's definitions holds, whatever comes and goes. Two readers of one changing
// directory, one of which has everything in a single chain, say the same.
func TestCollisions(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("in", 0o755); err != nil {
		t.Fatal(err)
	}
	s := newSource(t, Options{Paths: []string{"in"}})
	plain, single := newState(s), newState(s)
	single.index.hash = func(object.Key) uint64 { return 0 }
	random := rand.New(rand.NewPCG(1, 2))
	for step := range 150 {
		change(t, random)
		want, err := plain.scanAll(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := single.scanAll(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(showBatch(want), showBatch(got)); diff != "" {
			t.Fatalf("step %d (-hashed +single chain):\n%s", step, diff)
		}
	}
}

// change replaces or removes one of a few files, whose objects overlap and may
// be invalid.
func change(t *testing.T, random *rand.Rand) {
	t.Helper()
	name := fmt.Sprintf("in/%d.yaml", random.IntN(4))
	if random.IntN(5) == 0 {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return
	}
	var text strings.Builder
	for range random.IntN(5) + 1 {
		switch object := config(fmt.Sprintf("c%d", random.IntN(6)), fmt.Sprint(random.IntN(2))); random.IntN(8) {
		case 0:
			text.WriteString(object + "unknown: field\n---\n")
		case 1:
			text.WriteString("a: [\n---\n")
		default:
			text.WriteString(object + "---\n")
		}
	}
	write(t, name, text.String())
}

func showBatch(b source.Batch) string {
	var text strings.Builder
	for _, o := range b.Set {
		fmt.Fprintf(&text, "%s version %s generation %d\n", keyOf(o), o.GetResourceVersion(), o.GetGeneration())
	}
	for _, key := range b.Deleted {
		fmt.Fprintf(&text, "deleted %s\n", key)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Problems)) {
		if len(b.Problems[name]) == 0 {
			fmt.Fprintf(&text, "%s is fine\n", name)
		}
	}
	return text.String() + showProblems(b.Problems)
}
