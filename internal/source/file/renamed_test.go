package file

import (
	"fmt"
	"strings"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// renamedRoutes are routes of a kind, and of names that end so.
func renamedRoutes(n int, kind, end string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "apiVersion: gateway.networking.k8s.io/v1\nkind: %s\nmetadata: {name: r%d%s}\nspec: {parentRefs: [{name: gw}], hostnames: [h%d.example]}\n---\n", kind, i, end, i)
	}
	return b.String()
}

// BenchmarkRename is an edit that renames and misspells all routes of a file: each may be any of
// those that there were.
func BenchmarkRename(b *testing.B) {
	for _, n := range []int{750, 3000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.Chdir(b.TempDir())
			s := newSource(b, Options{Paths: []string{"in"}})
			for b.Loop() {
				b.StopTimer()
				st := newState(s)
				write(b, "in/a.yaml", renamedRoutes(n, "HTTPRoute", ""))
				if _, err := st.scanAll(b.Context(), nil); err != nil {
					b.Fatal(err)
				}
				write(b, "in/a.yaml", renamedRoutes(n, "HTTPRout", "-new"))
				b.StartTimer()
				batch, err := st.scanAll(b.Context(), nil)
				if err != nil || len(batch.Set) != n || len(batch.Deleted) > 0 {
					b.Fatalf("%d objects, %d deleted, %v", len(batch.Set), len(batch.Deleted), err)
				}
			}
		})
	}
}

// What an object that is gone may be is looked up in proportion to the objects of a file: all may
// be renamed, and misspelt or broken, in one edit.
func TestRenameIsLinear(t *testing.T) {
	broken := func(n int) string {
		return strings.ReplaceAll(strings.ReplaceAll(renamedRoutes(n, "ConfigMap", "-new"), "spec: {parentRefs", "data: [parents"), "v1\n", "v1\n\t")
	}
	for name, edit := range map[string]func(n int) string{
		"misspelt": func(n int) string { return renamedRoutes(n, "HTTPRout", "-new") },
		"of another kind": func(n int) string {
			return strings.ReplaceAll(renamedRoutes(n, "Servic", "-new"), "gateway.networking.k8s.io/", "")
		},
		"broken": broken,
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) (lookups, named int) {
				t.Chdir(t.TempDir())
				st := newState(newSource(t, Options{Paths: []string{"in"}}))
				hash := st.index.hash
				st.index.hash = func(key object.Key) uint64 {
					lookups++
					return hash(key)
				}
				write(t, "in/a.yaml", renamedRoutes(n, "HTTPRoute", ""))
				if _, err := st.scanAll(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				lookups = 0
				write(t, "in/a.yaml", edit(n))
				batch, err := st.scanAll(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if len(batch.Deleted) > 0 && name != "of another kind" {
					t.Fatalf("%d of %d are not held", len(batch.Deleted), n)
				}
				for _, p := range batch.Problems["in/a.yaml"] {
					named += len(p.Held)
				}
				return lookups, named
			}
			lookups, named := cost(50)
			twice, more := cost(100)
			if twice > 2*lookups+20 || more > 2*named+20 {
				t.Errorf("%d lookups and %d names of 50 objects, %d and %d of 100", lookups, named, twice, more)
			}
		})
	}
}

// Copies of one object cost no more than as many objects, also if none is valid or has a name.
func TestCopiesAreLinear(t *testing.T) {
	for name, doc := range map[string]string{
		"without a name":  "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nspec: {parentRefs: [{name: gw}]}\n---\n",
		"holding nothing": "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r}\nspec: {ruls: []}\n---\n",
		"no route":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: []\n---\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			const n = 300
			st := newState(newSource(t, Options{Paths: []string{"in"}}))
			hash, chains := st.index.hash, 0
			st.index.hash = func(key object.Key) uint64 {
				chains++
				return hash(key)
			}
			write(t, "in/a.yaml", strings.Repeat(doc, n))
			for _, text := range []string{strings.Repeat(doc, n), "# nothing\n"} {
				write(t, "in/a.yaml", text)
				chains = 0
				if _, err := st.scanAll(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				// One to link or unlink each, and some for their key.
				if chains > n+20 {
					t.Errorf("%d copies are looked up %d times", n, chains)
				}
			}
		})
	}
}

// What is written as null is as if it were not there, also where the rest of a route is refused:
// it takes nothing away from what is guarded, and widens nothing.
func TestNullInARefusedRoute(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: guard}\nspec:\n  parentRefs: [{name: gw, namespace: null}]\n  hostnames: null\n  rules:\n  - matches: [{path: {value: /admin}, headers: null}]\n    filters: null\n    backendRef: []\n")
	batch, err := newSource(t, Options{Paths: []string{"in"}}).Load(t.Context())
	if err != nil || len(batch.Set) != 1 {
		t.Fatalf("%d objects, %v", len(batch.Set), err)
	}
	told := batch.Problems["in/a.yaml"]
	if len(told) != 1 || told[0].Field != "spec.rules[0].backendRef" || strings.Contains(told[0].Message, "nothing can be read") {
		t.Errorf("problems are\n%s", showProblems(batch.Problems))
	}
	path := batch.Set[0].(*gwv1.HTTPRoute).Spec.Rules[0].Matches[0].Path
	if *path.Type != gwv1.PathMatchPathPrefix || *path.Value != "/admin" {
		t.Errorf("%s %s is guarded", *path.Type, *path.Value)
	}
}
