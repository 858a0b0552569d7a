package file

import (
	"strings"
	"syscall"
	"testing"
)

// A List with a mistake of its own is no reason to let go of the objects in it: each is one with a
// mistake, which keeps its last valid version, or guards what it says.
func TestBrokenList(t *testing.T) {
	const guard = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: guard}\nspec:\n  parentRefs: [{name: gw}]\n  hostnames: [a.example]\n"
	items := func(head, dash string) string {
		return head + dash + strings.ReplaceAll(strings.TrimSuffix(guard, "\n"), "\n", "\n"+strings.Repeat(" ", len(dash))) + "\n"
	}
	for name, c := range map[string]struct{ text, says string }{
		"misspelt kind":  {items("apiVersion: v1\nkind: Lst\nitems:\n", "- "), "in/a.yaml:2: HTTPRoute default/guard: kind: \"Lst\" is no List"},
		"no kind":        {items("apiVersion: v1\nitems:\n", "- "), "is no List"},
		"misspelt items": {items("apiVersion: v1\nkind: List\nitem:\n", "- "), "in/a.yaml:3: HTTPRoute default/guard: item: unknown field: did you mean items?"},
		"a mapping":      {items("apiVersion: v1\nkind: List\nitems:\n  a:\n", "    "), "items: must be a list, not a mapping"},
		"no dash":        {items("apiVersion: v1\nkind: List\nitems:\n", "  "), "write - before the object's first field"},
		"bare":           {items("", "- "), "in/a.yaml:1: HTTPRoute default/guard: a document must be a mapping with apiVersion and kind: remove the -"},
		"no YAML":        {items("apiVersion: v1\nkind: List\nitems:\n", "- ") + "- x: [\n", "not YAML"},
		"a typed list":   {items("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRouteLst\nitems:\n", "- "), "is no List"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			write(t, "in/a.yaml", c.text)
			p := l.start()
			if len(p) != 1 || !strings.Contains(p[0], c.says) {
				t.Errorf("problems are %q, want %q", p, c.says)
			}
			if l.held["HTTPRoute default/guard"] == nil {
				t.Errorf("the route isn't held from the start; problems are %q", p)
			}
			write(t, "in/a.yaml", guard)
			l.scan()
			valid := l.held["HTTPRoute default/guard"]
			write(t, "in/a.yaml", c.text)
			l.scan()
			if l.held["HTTPRoute default/guard"] != valid {
				t.Error("the last valid version is gone")
			}
		})
	}
}

// A List whose items are not written yet takes nothing away.
func TestListWithoutItems(t *testing.T) {
	for _, text := range []string{"apiVersion: v1\nkind: List\nitems:\n", "apiVersion: v1\nkind: List\n", "apiVersion: v1\nkind: Lit\n"} {
		l := newLife(t)
		write(t, "in/a.yaml", "apiVersion: v1\nkind: List\nitems:\n- "+strings.ReplaceAll(thing("a", "1"), "\n", "\n  "))
		l.start()
		write(t, "in/a.yaml", text)
		if p := l.scan(); len(p) != 1 || !strings.Contains(p[0], "items: ") {
			t.Errorf("problems are %q", p)
		}
		l.holds("no items", "a=1")
		write(t, "in/a.yaml", "apiVersion: v1\nkind: List\nitems: []\n")
		if p := l.scan(); len(p) > 0 {
			t.Errorf("problems are %q", p)
		}
		l.holds("none")
	}
}

// What is no file any more keeps what it had while it was one, and what never was a manifest says
// so.
func TestNoManifest(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", thing("a", "1"))
	l.start()
	if err := syscall.Unlink("in/a.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo("in/a.yaml", 0o600); err != nil {
		t.Fatal(err)
	}
	if p := l.scan(); len(p) != 1 || !strings.Contains(p[0], "in/a.yaml: can't be read: not a regular file or directory") {
		t.Errorf("problems are %q", p)
	}
	l.holds("a pipe", "a=1")
	if err := syscall.Unlink("in/a.yaml"); err != nil {
		t.Fatal(err)
	}
	write(t, "in/values.yaml", "image: {repository: nginx}\nservice: {type: ClusterIP}\n")
	if p := l.scan(); len(p) != 1 || !strings.Contains(p[0], "in/values.yaml:1: no manifest: it has none of apiVersion, kind, metadata and spec") {
		t.Errorf("problems are %q", p)
	}
	l.holds("gone")
}
