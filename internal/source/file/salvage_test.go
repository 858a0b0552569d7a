package file

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// whole reads a document as a scan does that has no other.
func (r *reader) whole(text []byte, isJSON bool) *document {
	doc, unparsed := r.read(text, isJSON, nil)
	if unparsed != nil {
		return r.salvage(unparsed, text, newEffort())
	}
	return doc
}

// brokenRoutes are long routes with what is no YAML in the middle, and separators that are none.
func brokenRoutes(first, n int, broken string) string {
	var b strings.Builder
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&b, "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata:\n  name: r%d\nspec:\n  parentRefs:\n  - name: gw\n    namespace: infra\n  hostnames:\n  - h%d.example\n  rules:\n", i, i)
		for rule := range 15 {
			b.WriteString("  - matches:\n")
			for path := range 5 {
				fmt.Fprintf(&b, "    - path:\n        value: /p%d-%d\n        type: Exact\n", rule, path)
			}
			if rule == 7 {
				b.WriteString(broken)
			}
		}
		b.WriteString("--\n")
	}
	return b.String()
}

// unreadable is text of which no repair makes YAML.
var unreadable = strings.Repeat("    - : : }\n   - ]\n", 12)

// load reads the directory in once, and returns the hosts of each object in force.
func load(t *testing.T) (hosts map[string]string, work *effort, problems string) {
	t.Helper()
	st := newState(newSource(t, Options{Paths: []string{"in"}}))
	batch, err := st.scanAll(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	hosts = map[string]string{}
	for _, o := range batch.Set {
		if route, ok := o.(*gwv1.HTTPRoute); ok {
			hosts[keyOf(o).String()] = fmt.Sprint(route.Spec.Hostnames, len(route.Spec.Rules), len(route.Spec.ParentRefs))
		}
	}
	return hosts, st.work, showProblems(batch.Problems)
}

// The work on text that is not YAML is bounded, whatever the text is like: a save must not stop
// the next ones from being read for minutes. All of its routes are held nevertheless.
func TestSalvageIsBounded(t *testing.T) {
	const routes = 120
	for name, text := range map[string]string{
		"blank lines above":         strings.Repeat("\n", 100_000) + brokenRoutes(0, routes, unreadable),
		"an open quote in each":     brokenRoutes(0, routes, "    name: \"x\n"),
		"as documents of their own": strings.ReplaceAll(brokenRoutes(0, routes, unreadable), "\n--\n", "\n---\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "in/a.yaml", text)
			hosts, work, _ := load(t)
			// The bound of trials, and each piece parsed once.
			if most := maxEffort + 2*len(text) + routes*trialCost; work.spent > most || work.tries > most/trialCost {
				t.Errorf("%d bytes in %d trials were parsed, want at most %d", work.spent, work.tries, most)
			}
			if len(hosts) != routes {
				t.Fatalf("%d routes are held, want %d", len(hosts), routes)
			}
			for i := range routes {
				if got := hosts[fmt.Sprintf("HTTPRoute default/r%d", i)]; !strings.HasPrefix(got, fmt.Sprintf("[h%d.example] ", i)) {
					t.Errorf("route %d is held for %q", i, got)
				}
			}
		})
	}
}

// What is made of text depends on the text alone, and not on which of the files, which are read
// in parallel, is done first.
func TestSalvageIsDeterministic(t *testing.T) {
	t.Chdir(t.TempDir())
	for i := range 4 {
		text := brokenRoutes(30*i, 15, "    na\tme: [\n") + brokenRoutes(30*i+15, 15, unreadable)
		if i%2 > 0 {
			text = strings.ReplaceAll(text, "\n--\n", "\n---\n")
		}
		write(t, fmt.Sprintf("in/%d.yaml", i), text)
	}
	hosts, work, problems := load(t)
	for range 2 {
		again, more, told := load(t)
		if diff := cmp.Diff(hosts, again); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
		if more.spent != work.spent || more.tries != work.tries {
			t.Errorf("%d bytes in %d trials, then %d in %d", work.spent, work.tries, more.spent, more.tries)
		}
		if told != problems {
			t.Errorf("(-first +again):\n%s", cmp.Diff(problems, told))
		}
	}
}

// A text that uses up the work of its file takes none from what a mistake in the next one needs.
func TestSalvageIsShared(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", brokenRoutes(0, 150, unreadable))
	write(t, "in/b.yaml", strings.Replace(strings.TrimSuffix(brokenRoutes(500, 1, ""), "--\n"), "\n        type", "\n\t\t\t\ttype", 1))
	hosts, _, _ := load(t)
	if got := hosts["HTTPRoute default/r500"]; got != "[h500.example] 15 1" {
		t.Errorf("a route with a tab in it is held for %q", got)
	}
}

// A mistake in a long route is found like one in a short one.
func TestLongRouteIsRepaired(t *testing.T) {
	t.Chdir(t.TempDir())
	text := brokenRoutes(0, 1, "") + brokenRoutes(1, 1, "")
	write(t, "in/a.yaml", strings.Replace(strings.ReplaceAll(text, "--\n", ""), "value: /p14-2", "value: [/p14-2", 1))
	hosts, _, problems := load(t)
	want := map[string]string{"HTTPRoute default/r0": "[h0.example] 15 1", "HTTPRoute default/r1": "[h1.example] 15 1"}
	if diff := cmp.Diff(want, hosts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(problems, "in/a.yaml:") {
		t.Errorf("problems are %s", problems)
	}
}

// TestOutline protects what can be read line by line of text of which nothing makes YAML.
func TestOutline(t *testing.T) {
	const head = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata:\n  name: guard\nspec:\n"
	for name, text := range map[string]string{
		"block":            head + "  parentRefs:\n  - name: gw\n    namespace: infra\n  hostnames:\n  - a.example\n  - b.example # too\n",
		"flow":             head + "  parentRefs: [{name: gw, namespace: infra}]\n  hostnames: [a.example, \"b.example\"]\n",
		"indents":          head + " parentRefs:\n    - name: gw\n   namespace: infra\n hostnames:\n   - a.example\n  -  b.example\n",
		"colons":           head + "  parentRefs\n  - name: gw\n    namespace: infra\n  hostnames\n  - a.example\n  - b.example\n",
		"misspelt":         head + "  parentRef:\n  - name: gw\n    namespace: infra\n  hostname: [a.example, b.example\n",
		"an indent":        "  " + strings.ReplaceAll(head, "\n", "\n  ") + "  parentRefs: [{name: gw, namespace: infra}]\n    hostnames: [a.example, b.example]\n",
		"an item":          "apiVersion: v1\nkind: List\nitems:\n- " + strings.TrimSuffix(strings.ReplaceAll(head, "\n", "\n  "), "  ") + "    parentRefs:\n    - name: gw\n      namespace: infra\n    hostnames:\n    - a.example\n    - b.example\n",
		"no dash":          head + "  parentRefs:\n    name: gw\n    namespace: infra\n  hostnames:\n    a.example\n    b.example\n",
		"a list in quotes": head + "  \"parentRefs\":\n  - \"name\": gw\n    'namespace': 'infra'\n  hostnames:\n  - 'a.example'\n  - \"b.example\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			indent := strings.Repeat(" ", len(text)-len(strings.TrimLeft(text, " ")))
			write(t, "in/a.yaml", text+indent+"  rules:\n"+unreadable)
			st := newState(newSource(t, Options{Paths: []string{"in"}}))
			batch, err := st.scanAll(t.Context(), nil)
			if err != nil || len(batch.Set) != 1 {
				t.Fatalf("%d objects, %v: %s", len(batch.Set), err, showProblems(batch.Problems))
			}
			route := batch.Set[0].(*gwv1.HTTPRoute)
			if route.Name != "guard" || !slices.Equal(route.Spec.Hostnames, []gwv1.Hostname{"a.example", "b.example"}) {
				t.Errorf("%s is held for %q", route.Name, route.Spec.Hostnames)
			}
			if refs := route.Spec.ParentRefs; len(refs) != 1 || refs[0].Name != "gw" || refs[0].Namespace == nil || *refs[0].Namespace != "infra" {
				t.Errorf("it is attached to %+v", refs)
			}
		})
	}
}

// Pieces without number are no work without end either: of those that name nothing that they are
// attached to nothing is held, and of the others so many.
func TestSalvageOfMany(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", strings.Repeat("kind: HTTPRoute\napiVersion: \n--\n", 20*maxObjects)+brokenRoutes(0, 1, unreadable))
	hosts, work, _ := load(t)
	if len(hosts) != 1 || work.objects != maxObjects-1 {
		t.Errorf("%d objects are held, and %d more may be", len(hosts), work.objects)
	}
	work = newEffort()
	work.objects = 2
	text := []byte(brokenRoutes(0, 4, unreadable))
	r := &reader{validator: newSource(t, Options{Paths: []string{"in"}}).validator}
	_, unparsed := r.read(text, false, nil)
	doc := r.salvage(unparsed, text, work)
	if len(doc.definitions()) != 2 || len(doc.faults()) != 1 || !doc.rest.broken {
		t.Errorf("%d objects are held, and told is %+v", len(doc.definitions()), doc.faults())
	}
}

// What of a text can't be held is told, also where other objects of it are.
func TestNotSalvagedIsTold(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in/a.yaml", brokenRoutes(0, 1, unreadable)+"apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: lost}\nspec:\n  rules:\n"+unreadable)
	_, _, problems := load(t)
	if !strings.Contains(problems, "may be open") {
		t.Errorf("problems are\n%s", problems)
	}
	batch, err := newSource(t, Options{Paths: []string{"in"}}).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := slices.ContainsFunc(batch.Problems["in/a.yaml"], func(p source.Problem) bool { return p.Guess.Name.Name == "lost" })
	if !told {
		t.Errorf("problems are\n%s", problems)
	}
}
