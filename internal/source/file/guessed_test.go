package file

import (
	"slices"
	"strings"
	"testing"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A guess takes nothing from what is rightly defined, wherever that is and whichever came first,
// and there is one for each object whose name can't be read.
func TestGuessGivesWay(t *testing.T) {
	route := func(kind, name, host string) string {
		return "apiVersion: gateway.networking.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: {parentRefs: [{name: gw}], hostnames: [" + host + "], rules: [{backendRefs: [{name: b, port: 80}]}]}\n"
	}
	l := newLife(t)
	host := func(what, want string) {
		t.Helper()
		got := ""
		if o, ok := l.held["HTTPRoute default/guard"].(*gwv1.HTTPRoute); ok {
			got = string(o.Spec.Hostnames[0])
		}
		if got != want {
			t.Errorf("%s: the route of %s is in force, want %s", what, got, want)
		}
	}
	write(t, "in/a.yaml", route("HTTPRout", "guard", "guess.example"))
	l.start()
	host("alone", "guess.example")
	write(t, "in/b.yaml", route("HTTPRoute", "guard", "right.example"))
	l.scan()
	host("a right one comes", "right.example")
	l.start()
	host("in the next process", "right.example")
	write(t, "in/a.yaml", route("HTTPRoute", "guard", "first.example"))
	l.scan()
	host("what is right comes too late", "right.example")
	write(t, "in/b.yaml", "")
	write(t, "in/c.yaml", route("HTTPRout", "guard", "guess.example"))
	l.start()
	host("what is left", "first.example")
	write(t, "in/a.yaml", route("HTTPRout", "guard", "first.example"))
	l.scan()
	host("misspelt now", "first.example")
	write(t, "in/b.yaml", route("HTTPRoute", "guard", "right.example"))
	l.scan()
	host("a right one comes, and there is a last valid version", "right.example")

	write(t, "in/d.yaml", route("HTTPRoute", "A", "a.example")+"---\n"+route("HTTPRoute", "B", "b.example"))
	l.scan()
	var hosts []string
	for key, o := range l.held {
		if strings.Contains(key, "(unnamed-") {
			hosts = append(hosts, string(o.(*gwv1.HTTPRoute).Spec.Hostnames[0]))
		}
	}
	slices.Sort(hosts)
	if !slices.Equal(hosts, []string{"a.example", "b.example"}) {
		t.Errorf("without a name, the routes of %q are held", hosts)
	}
	write(t, "in/d.yaml", route("HTTPRoute", "a", "a.example")+"---\n"+route("HTTPRoute", "b", "b.example"))
	l.scan()
	l.holds("all have names", "HTTPRoute default/a", "HTTPRoute default/b", "HTTPRoute default/guard")
}

// What has gone from a file is held while a text may be about it, and no longer.
func TestHeldForAGuess(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", thing("a", "1")+"---\n"+thing("b", "1"))
	l.start()
	misspelt := strings.Replace(thing("c", "2"), "ConfigMap", "ConfgMap", 1)
	write(t, "in/a.yaml", misspelt+"---\n"+thing("b", "1"))
	p := l.scan()
	l.holds("renamed and misspelt", "a=1", "b=1")
	if len(p) != 1 || !strings.Contains(p[0], "did you mean ConfigMap? It may be ConfigMap default/a, which the file had before, and which stays in force") {
		t.Errorf("problems are %q", p)
	}
	write(t, "in/a.yaml", misspelt)
	l.scan()
	l.holds("and another one is deleted", "a=1")
	l.start()
	l.holds("in the next process", "a=1")
	write(t, "in/a.yaml", thing("c", "2"))
	if p := l.scan(); len(p) > 0 {
		t.Errorf("problems are %q", p)
	}
	l.holds("mended", "c=2")
	// Another kind is another object.
	write(t, "in/a.yaml", strings.Replace(thing("d", "3"), "ConfigMap", "Secrt", 1))
	l.scan()
	l.holds("replaced by one of another kind")
}

// A text that can't be read is told of no object that another file has in force: the row of that
// object would say that it is refused.
func TestBrokenCopyIsNobody(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", thing("a", "1"))
	l.start()
	write(t, "in/b.yaml", thing("a", "2"))
	l.scan()
	write(t, "in/b.yaml", "\t: [")
	problems := l.scan()
	l.holds("the copy is broken", "a=1")
	if len(problems) != 1 || strings.Contains(problems[0], "default/a") {
		t.Errorf("problems are %q", problems)
	}
}
