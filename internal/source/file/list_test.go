package file

import (
	"strings"
	"syscall"
	"testing"
)

// A List with a mistake of its own is text that can't be read: what the file had stays.
func TestBrokenList(t *testing.T) {
	item := "- " + strings.ReplaceAll(strings.TrimSuffix(thing("a", "2"), "\n"), "\n", "\n  ") + "\n"
	for name, c := range map[string]struct{ text, says string }{
		"misspelt kind":  {"apiVersion: v1\nkind: Lst\nitems:\n" + item, "in/a.yaml:2: kind: \"Lst\" is no List, and there are objects in items: write kind: List"},
		"no kind":        {"apiVersion: v1\nitems:\n" + item, "is no List"},
		"misspelt items": {"apiVersion: v1\nkind: List\nitem:\n" + item, "items: must be a list of objects"},
		"bare":           {item, "in/a.yaml:1: a document must be a mapping with apiVersion and kind"},
		"no YAML":        {"apiVersion: v1\nkind: List\nitems:\n" + item + "- x: [\n", "not YAML"},
		"no object":      {"apiVersion: v1\nkind: List\nitems: [7]\n", "in/a.yaml:3: items[0]: an item of a List must be a mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			write(t, "in/a.yaml", thing("a", "1"))
			l.start()
			write(t, "in/a.yaml", c.text)
			if p := l.scan(); len(p) != 1 || !strings.Contains(p[0], c.says) {
				t.Errorf("problems are %q, want %q", p, c.says)
			}
			l.holds(name, "a=1")
		})
	}
}

// A List whose items are not written yet takes nothing away.
func TestListWithoutItems(t *testing.T) {
	for _, text := range []string{"apiVersion: v1\nkind: List\nitems:\n", "apiVersion: v1\nkind: List\n"} {
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
