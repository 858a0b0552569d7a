package file

import (
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/source"
)

// Objects have an age from when they were first seen, which edits and restarts don't
// change; those of the first start are of one age.
func TestAge(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", thing("a", "1"))
	write(t, "in/b.yaml", thing("b", "1"))
	l.start()
	age := func(name string) int64 {
		at := l.held["ConfigMap default/"+name].GetCreationTimestamp()
		if at.IsZero() {
			return 0
		}
		return at.UnixNano()
	}
	if age("a") != 0 || age("b") != 0 {
		t.Error("what was there first has an age")
	}
	write(t, "in/c.yaml", thing("c", "1"))
	l.scan()
	c := age("c")
	if c == 0 {
		t.Error("what came later has no age")
	}
	write(t, "in/c.yaml", thing("c", "2"))
	write(t, "in/a.yaml", thing("a", "2"))
	l.scan()
	if age("c") != c || age("a") != 0 {
		t.Error("an edit changes an age")
	}
	write(t, "in/d.yaml", thing("d", "1"))
	if err := os.Rename("in/c.yaml", "in/z.yaml"); err != nil {
		t.Fatal(err)
	}
	l.start()
	d := age("d")
	if age("a") != 0 || age("c") != c || d <= c {
		t.Errorf("after a restart, a is of %d, c of %d, was %d, and d of %d", age("a"), age("c"), c, d)
	}
	write(t, "in/d.yaml", broken("d"))
	l.start()
	write(t, "in/d.yaml", thing("d", "2"))
	l.start()
	if age("d") != d {
		t.Error("a mistake changes an age")
	}
	// What a text tells doesn't make an object older than what was there before it, also not
	// one that is there already.
	dated := func(name, version, year string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", labels: {value: \"" + version + "\"}, creationTimestamp: \"" + year + "-01-02T03:04:05Z\"}\n"
	}
	write(t, "in/e.yaml", dated("e", "1", "2020")+"---\n"+dated("f", "1", "2010")+"---\n"+thing("g", "1"))
	l.scan()
	e, f, g := age("e"), age("f"), age("g")
	if d >= g || g >= f || f >= e {
		t.Errorf("d is of %d; of those that came later, g is of %d, f, which says 2010, of %d, and e, which says 2020, of %d", d, g, f, e)
	}
	write(t, "in/d.yaml", dated("d", "3", "2000"))
	l.scan()
	write(t, "in/e.yaml", dated("e", "2", "2000")+"---\n"+thing("f", "1")+"---\n"+thing("g", "1"))
	for range 2 {
		l.start()
		if age("d") != d || age("e") != e || age("f") != f || age("g") != g {
			t.Errorf("ages are %d, %d, %d, %d, and were %d, %d, %d, %d", age("d"), age("e"), age("f"), age("g"), d, e, f, g)
		}
	}
	if err := os.Remove("in/z.yaml"); err != nil {
		t.Fatal(err)
	}
	l.scan()
	write(t, "in/z.yaml", thing("c", "1"))
	l.scan()
	if age("c") <= d {
		t.Error("what was deleted keeps its age")
	}
}

// A clock that has been set back makes nothing older than what was there first.
func TestAgeUnderAClockSetBack(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", thing("a", "1"))
	l.start()
	write(t, "in/b.yaml", thing("b", "1"))
	l.scan()
	first := time.Now().Add(24 * time.Hour)
	def := l.index.winner(source.KeyOf(l.held["ConfigMap default/b"]))
	l.kept.changing(l.state, []*definition{def})
	def.inForce().SetCreationTimestamp(metav1.Time{Time: first}) // from a clock that was ahead by a day
	l.save()
	age := func(name string) time.Time { return l.held["ConfigMap default/"+name].GetCreationTimestamp().Time }
	l.start()
	if !age("b").Equal(first) {
		t.Fatalf("b is of %s, want %s", age("b"), first)
	}
	write(t, "in/c.yaml", thing("c", "1"))
	l.scan()
	if !age("c").After(first) {
		t.Errorf("c came after b, which is of %s, and is of %s", first, age("c"))
	}
	write(t, "in/d.yaml", thing("d", "1"))
	l.start()
	if !age("d").After(age("c")) {
		t.Errorf("d came after c, which is of %s, and is of %s", age("c"), age("d"))
	}
}

// At the first start all objects are of the same age, and what their texts tell decides: a
// dump of a cluster keeps its order.
func TestAgeOfADump(t *testing.T) {
	l := newLife(t)
	write(t, "in/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, creationTimestamp: \"2020-01-02T03:04:05Z\"}\n")
	for range 2 {
		l.start()
		if at := l.held["ConfigMap default/a"].GetCreationTimestamp(); at.Year() != 2020 {
			t.Errorf("it is of %s", at)
		}
	}
}
