package file

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/tools/txtar"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLoad reads the files of each case in testdata, and compares the objects
// and the problems, which name file, line and field.
func TestLoad(t *testing.T) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			want := map[string]string{}
			for _, f := range archive.Files {
				if f.Name == "objects" || f.Name == "problems" {
					want[f.Name] = string(f.Data)
					continue
				}
				write(t, f.Name, string(f.Data))
			}
			batch, err := newSource(t, Options{Paths: []string{"in"}, Experimental: strings.HasPrefix(name, "experimental")}).Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{"objects": showObjects(batch.Set), "problems": showProblems(batch.Problems)}
			if *update {
				for i, f := range archive.Files {
					if text, ok := got[f.Name]; ok {
						archive.Files[i].Data = []byte(text)
					}
				}
				if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func newSource(t testing.TB, opts Options) *Source {
	t.Helper()
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func keyOf(o source.Object) object.Key {
	gvk := o.GetObjectKind().GroupVersionKind()
	return object.Key{Kind: object.KindOf(gvk.Group, gvk.Kind), Name: object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

func showObjects(objects []source.Object) string {
	var b strings.Builder
	for _, o := range objects {
		apiVersion, _ := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		fmt.Fprintf(&b, "%s %s generation %d\n", apiVersion, keyOf(o), o.GetGeneration())
	}
	return b.String()
}

func showProblems(problems map[string][]source.Problem) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		for _, p := range problems[name] {
			fmt.Fprintf(&b, "%s [%s]", p.Error(), p.Reason)
			if p.Stale {
				b.WriteString(" stale")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
