package flow

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// scattered declares an input and a table with an entry for each word of an
// input's value, so that tests can move an output key from unit to unit.
func scattered() (*Engine, *Input[string, string], *Derived[string, string]) {
	e := New()
	in := NewInput[string, string](e, "in")
	out := Map("out", in, func(_ *Ctx, k, v string, emit func(string, string)) {
		for word := range strings.FieldsSeq(v) {
			emit(word, k)
			if word == "panic" {
				panic(errors.New("told to"))
			}
		}
	})
	return e, in, out
}

func collect[K comparable, V any](e *Engine, t Table[K, V]) map[K]V {
	var out map[K]V
	e.View(func(c *Ctx) { out = maps.Collect(All(c, t)) })
	return out
}

func expect[V any](t interface {
	Helper()
	Fatalf(format string, args ...any)
}, what string, got, want V,
) {
	t.Helper()
	if d := gocmp.Diff(want, got); d != "" {
		t.Fatalf("%s differs (-want +got):\n%s", what, d)
	}
}

// TestOutputKeysMove protects law 5 where output keys pass from unit to unit:
// renames, swaps and rings of them in one transaction.
func TestOutputKeysMove(t *testing.T) {
	words := []string{"p", "q", "r", "s", "t"}
	rapid.Check(t, func(t *rapid.T) {
		e, in, out := scattered()
		for range rapid.IntRange(1, 8).Draw(t, "transactions") {
			owners := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ""}), len(words), len(words)).Draw(t, "owners")
			values, want := map[string]string{"a": "", "b": "", "c": ""}, map[string]string{}
			for i, o := range owners {
				if o != "" {
					values[o] += " " + words[i]
					want[words[i]] = o
				}
			}
			c := e.Update(func(tx *Tx) {
				for _, k := range rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "order") {
					in.Set(tx, k, values[k])
				}
			})
			if len(c.Failures) > 0 {
				t.Fatal(c.Failures[0])
			}
			expect(t, "outputs", collect(e, out), want)
		}
	})
}

// TestOutputKeyEmittedTwice protects law 3: it is reported, it harms nobody
// else, and it heals when one of the two lets go, even if it is the other one.
func TestOutputKeyEmittedTwice(t *testing.T) {
	e, in, out := scattered()
	c := e.Update(func(tx *Tx) {
		in.Set(tx, "a", "x")
		in.Set(tx, "b", "y")
		in.Set(tx, "c", "z z")
	})
	if len(c.Failures) != 1 || c.Failures[0].Key != "c" {
		t.Fatalf("failures %v, want one, of c", c.Failures)
	}
	for range 3 {
		c = e.Update(func(tx *Tx) { in.Delete(tx, "c"); in.Set(tx, "b", "y x") })
		c2 := e.Update(func(tx *Tx) { in.Set(tx, "d", "w") })
		if len(c.Failures)+len(c2.Failures) != 2 || len(out.contested) != 1 {
			t.Fatalf("failures %v, want b's while it lasts", c.Failures)
		}
		expect(t, "outputs", collect(e, out), map[string]string{"x": "a", "y": "b", "w": "d"})
		e.Update(func(tx *Tx) { in.Delete(tx, "d"); in.Set(tx, "b", "y") })
		expect(t, "outputs", collect(e, out), map[string]string{"x": "a", "y": "b"})
	}
	e.Update(func(tx *Tx) { in.Set(tx, "b", "y x") })
	e.Update(func(tx *Tx) { in.Delete(tx, "a") })
	expect(t, "outputs", collect(e, out), map[string]string{"x": "b", "y": "b"})
	if len(out.contested) > 0 {
		t.Errorf("%d contested units left", len(out.contested))
	}
}

// TestPanicKeepsLastOutputs protects the outputs of a unit whose function panics later.
func TestPanicKeepsLastOutputs(t *testing.T) {
	e, in, out := scattered()
	e.Update(func(tx *Tx) { in.Set(tx, "a", "x y"); in.Set(tx, "b", "z") })
	c := e.Update(func(tx *Tx) { in.Set(tx, "a", "w panic"); in.Set(tx, "b", "v") })
	if len(c.Failures) != 1 {
		t.Fatalf("failures %v, want one", c.Failures)
	}
	f := c.Failures[0]
	if f.Table != "out" || f.Key != "a" || !strings.Contains(f.Stack, "engine_test.go") || f.Error() != "table out, key a: told to" {
		t.Errorf("failure is %q with stack %s", f.Error(), f.Stack)
	}
	expect(t, "outputs", collect(e, out), map[string]string{"x": "a", "y": "a", "v": "b"})
	e.Update(func(tx *Tx) { in.Set(tx, "a", "w") })
	expect(t, "outputs", collect(e, out), map[string]string{"w": "a", "v": "b"})
	if got := e.Stats()[1].Panics; got != 1 {
		t.Errorf("%d panics counted, want 1", got)
	}
}

// TestPanickingBookkeeping protects against half-done changes when an index
// function, a comparison or an aggregate fails.
func TestPanickingBookkeeping(t *testing.T) {
	e := New()
	in := NewInput[string](e, "in", Equal(func(a, b int) bool {
		if a == 66 || b == 66 {
			panic("can't compare")
		}
		return a == b
	}))
	count := Count("count", in, func(_ string, v int, yield func(string)) {
		yield("all")
		if v == 13 {
			panic("can't sort")
		}
		yield("all")
	})
	sum := Fold("sum", in, func(_ string, _ int, yield func(string)) { yield("all") },
		func(s int, _ string, v int) int {
			if v == 7 {
				panic("can't add")
			}
			return s + v
		},
		func(s int, _ string, v int) int { return s - v%7 })
	for _, v := range []int{1, 13, 66, 66, 1, 7, 2} {
		e.Update(func(tx *Tx) { in.Set(tx, "a", v); in.Set(tx, "b", 1) })
	}
	expect(t, "count", collect(e, count), map[string]int{"all": 2})
	expect(t, "input", collect(e, in), map[string]int{"a": 2, "b": 1})
	e.Update(func(tx *Tx) { in.Delete(tx, "a"); in.Delete(tx, "b") })
	expect(t, "count", collect(e, count), map[string]int{})
	expect(t, "sum", collect(e, sum), map[string]int{})
}

// TestEqualOutputsStopTheWave protects the cost of a change that changes nothing.
func TestEqualOutputsStopTheWave(t *testing.T) {
	e := New()
	in := NewInput[string, int](e, "in")
	sign := Map("sign", in, func(_ *Ctx, k string, v int, emit func(string, bool)) { emit(k, v > 0) })
	Map("text", sign, func(_ *Ctx, k string, v bool, emit func(string, string)) { emit(k, fmt.Sprint(v)) })
	for v := range 5 {
		e.Update(func(tx *Tx) { in.Set(tx, "a", v+1) })
	}
	e.Update(func(tx *Tx) { in.Set(tx, "a", 5) })
	var runs []uint64
	for _, s := range e.Stats() {
		runs = append(runs, s.Runs)
	}
	expect(t, "runs", runs, []uint64{0, 5, 1})
}

// TestMissingValueWakesItsReaders protects the law that a read that found nothing
// is a dependency, and that nobody else is woken.
func TestMissingValueWakesItsReaders(t *testing.T) {
	e := New()
	in := NewInput[string, string](e, "in")
	secrets := NewInput[string, string](e, "secrets")
	out := Map("out", in, func(c *Ctx, k, v string, emit func(string, string)) {
		s, _ := Get(c, secrets, v)
		emit(k, s)
	})
	e.Update(func(tx *Tx) {
		for i := range 100 {
			in.Set(tx, fmt.Sprint(i), fmt.Sprint("secret-", i))
		}
	})
	before := out.runs
	e.Update(func(tx *Tx) { secrets.Set(tx, "secret-7", "here"); secrets.Set(tx, "unread", "x") })
	if got := out.runs - before; got != 1 {
		t.Errorf("%d units ran, want 1", got)
	}
	expect(t, "output", collect(e, out)["7"], "here")
}

// TestCommit protects what leaves the engine: the net difference of watched
// tables across a transaction.
func TestCommit(t *testing.T) {
	e := New()
	in := NewInput[string, int](e, "in")
	out := Map("out", in, func(_ *Ctx, k string, v int, emit func(string, int)) { emit(k, v) })
	Watch(out)
	Watch(in)
	c := e.Update(func(tx *Tx) { in.Set(tx, "a", 1) })
	expect(t, "added", Changes(c, out), []Change[string, int]{{Key: "a", New: 1, Has: true}})
	c = e.Update(func(tx *Tx) { in.Set(tx, "a", 2); in.Set(tx, "a", 3); in.Set(tx, "b", 1); in.Delete(tx, "b") })
	expect(t, "changed", Changes(c, out), []Change[string, int]{{Key: "a", Old: 1, Had: true, New: 3, Has: true}})
	expect(t, "changed inputs", Changes(c, in), []Change[string, int]{{Key: "a", Old: 1, Had: true, New: 3, Has: true}})
	c = e.Update(func(tx *Tx) { in.Delete(tx, "a"); in.Set(tx, "a", 3) })
	expect(t, "unchanged", Changes(c, in), nil)
	c = e.Update(func(tx *Tx) { in.Delete(tx, "a") })
	expect(t, "removed", Changes(c, out), []Change[string, int]{{Key: "a", Old: 3, Had: true}})
	if c.Version != 4 {
		t.Errorf("version %d, want 4", c.Version)
	}
}

// TestDump protects the order in which tables print.
func TestDump(t *testing.T) {
	e, in, _ := scattered()
	e.Update(func(tx *Tx) { in.Set(tx, "b", "y"); in.Set(tx, "a", "x") })
	var got []string
	seq, ok := e.Dump("out")
	for k, v := range seq {
		got = append(got, fmt.Sprint(k, v))
	}
	expect(t, "dump", got, []string{"xa", "yb"})
	if _, none := e.Dump("nothing"); none || !ok {
		t.Errorf("existing table found: %t, missing table found: %t", ok, none)
	}
}

// TestMisuse protects the programmer: code that breaks a law panics at once.
func TestMisuse(t *testing.T) {
	panics := func(want string, fn func()) {
		t.Helper()
		defer func() {
			t.Helper()
			if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
				t.Errorf("panic is %q, want %q", got, want)
			}
		}()
		fn()
	}
	e, in, out := scattered()
	panics("two tables are named in", func() { NewInput[string, int](e, "in") })
	var kept *Tx
	e.Update(func(tx *Tx) { kept = tx })
	panics("written outside", func() { in.Set(kept, "a", "x") })
	panics("declared after", func() { NewInput[string, int](e, "late") })

	// An engine survives a transaction whose function fails.
	panics("oops", func() { e.Update(func(tx *Tx) { in.Set(tx, "a", "x"); panic("oops") }) })
	e.Update(func(*Tx) {})
	expect(t, "outputs", collect(e, out), map[string]string{"x": "a"})

	e = New()
	in = NewInput[string, string](e, "in")
	var later *Derived[string, string]
	Map("early", in, func(c *Ctx, _, _ string, _ func(string, string)) { Get(c, later, "a") })
	Map("greedy", in, func(c *Ctx, _, _ string, _ func(string, string)) { All(c, in) })
	later = Map("later", in, func(*Ctx, string, string, func(string, string)) {})
	c := e.Update(func(tx *Tx) { in.Set(tx, "a", "x") })
	if len(c.Failures) != 2 {
		t.Errorf("failures %v, want one of each table that misreads", c.Failures)
	}
}

// TestViewsBesideUpdates is for the race detector: views run side by side and
// between transactions, over buckets that are not yet in order.
func TestViewsBesideUpdates(t *testing.T) {
	e := New()
	in := NewInput[int, int](e, "in")
	byHalf := NewIndex(in, func(k, _ int, yield func(bool)) { yield(k%2 == 0) }, cmp.Compare[int])
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				e.View(func(c *Ctx) {
					last := -1
					for k := range Select(c, byHalf, true).All() {
						if k <= last {
							t.Errorf("%d follows %d", k, last)
						}
						last = k
					}
					Get(c, in, 3)
				})
				e.Stats()
			}
		})
	}
	for i := range 200 {
		e.Update(func(tx *Tx) {
			for k := range 10 {
				in.Set(tx, (i*7+k*11)%50, i)
				in.Delete(tx, (i*3+k)%50)
			}
		})
	}
	wg.Wait()
}

// Tables are visited by a bit each, and the bits take several words. A change goes through
// a chain of tables of any length, over the borders of words, and runs nothing beside it.
func TestManyTables(t *testing.T) {
	const length = 200
	e := New()
	in := NewInput[string, int](e, "in")
	chains := map[string]Table[string, int]{"a": in, "b": in}
	for i := range length {
		for _, name := range []string{"a", "b"} {
			chains[name] = Map(fmt.Sprint(name, i), chains[name], func(_ *Ctx, k string, v int, emit func(string, int)) {
				if k == name {
					emit(k, v+1)
				}
			})
		}
	}
	Watch(chains["a"])
	e.Update(func(tx *Tx) {
		in.Set(tx, "a", 1)
		in.Set(tx, "b", 1)
	})
	c := e.Update(func(tx *Tx) { in.Set(tx, "a", 2) })
	if got := Changes(c, chains["a"]); len(got) != 1 || got[0].New != 2+length {
		t.Errorf("the end of the chain changed by %+v, want a = %d", got, 2+length)
	}
	for _, s := range e.Stats() {
		want := uint64(2) // runs of both transactions
		if s.Table == "in" {
			want = 0
		} else if s.Table == "a0" || s.Table == "b0" {
			want = 3 // the keys of both chains, and the edited one again
		} else if strings.HasPrefix(s.Table, "b") {
			want = 1
		}
		if s.Runs != want {
			t.Errorf("table %s ran %d units, want %d", s.Table, s.Runs, want)
		}
	}
	if c := e.Update(func(*Tx) {}); len(Changes(c, chains["a"])) != 0 {
		t.Error("an empty transaction changes something")
	}
}

// TestLargeBuckets protects law 5 where so many entries stand under one key that they are searched for by
// their own, and where some of them pass from table to table in one transaction.
func TestLargeBuckets(t *testing.T) {
	e := New()
	left, right := NewInput[int, string](e, "left"), NewInput[int, string](e, "right")
	x := NewIndex(left, func(_ int, _ string, yield func(struct{})) { yield(struct{}{}) }, cmp.Compare[int])
	x.Also(right)
	all := Group("all", x, func(_ *Ctx, _ struct{}, members Members[int, string]) (string, bool) {
		var text strings.Builder
		for k, v := range members.All() {
			fmt.Fprint(&text, k, v, " ")
		}
		return text.String(), true
	})
	const n = 2 * many
	scratch := map[int]string{}
	update := func(what string, change func(tx *Tx, k int)) {
		e.Update(func(tx *Tx) {
			for i := range n {
				change(tx, i*101%n) // in no order
			}
		})
		var want strings.Builder
		for _, k := range slices.Sorted(maps.Keys(scratch)) {
			fmt.Fprint(&want, k, scratch[k], " ")
		}
		expect(t, what, collect(e, all)[struct{}{}], want.String())
	}
	update("filled", func(tx *Tx, k int) { left.Set(tx, k, "l"); scratch[k] = "l" })
	update("moved", func(tx *Tx, k int) {
		if k%2 == 0 {
			right.Set(tx, k, "r")
			left.Delete(tx, k)
			scratch[k] = "r"
		}
	})
	update("thinned", func(tx *Tx, k int) {
		switch k % 5 {
		case 0:
			left.Delete(tx, k)
			right.Delete(tx, k)
			delete(scratch, k)
		case 1:
			left.Set(tx, k+n, "l")
			scratch[k+n] = "l"
		}
	})
}
