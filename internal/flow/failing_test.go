package flow

import (
	"slices"
	"testing"
)

// TestFailing protects that what stands failed is known, and only that: a unit until it has run well
// or has ended, an entry of an index or an aggregate until it is sorted anew or is gone.
func TestFailing(t *testing.T) {
	e := New()
	in := NewInput[string](e, "in", Equal(Same[int]))
	mapped := Map("mapped", in, func(_ *Ctx, k string, v int, emit func(string, int)) {
		if v == 1 {
			panic("can't map")
		}
		emit(k, v)
	})
	Group("grouped", NewIndex(mapped, func(_ string, v int, yield func(int)) {
		if v == 2 {
			panic("can't sort")
		}
		yield(v)
	}, func(a, b string) int { return slices.Compare([]byte(a), []byte(b)) }), func(_ *Ctx, i int, _ Members[string, int]) (int, bool) {
		if i == 3 {
			panic("can't group")
		}
		return i, true
	})
	Fold("summed", mapped, func(_ string, _ int, yield func(int)) { yield(0) },
		func(s int, _ string, v int) int {
			if v == 4 {
				panic("can't add")
			}
			return s + v
		},
		func(s int, _ string, v int) int { return s - v%4 })
	behind := e.Declared()
	Map("later", mapped, func(_ *Ctx, _ string, v int, _ func(string, int)) {
		if v == 5 {
			panic("can't be seen from before")
		}
	})
	tables := func(before Mark) (names []string) {
		for _, f := range e.Failing(before) {
			names = append(names, f.Table)
		}
		return names
	}
	for _, last := range []string{"well", "deleted"} {
		for v, want := range [][]string{1: {"mapped"}, 2: {"mapped"}, 3: {"grouped"}, 4: {"summed"}, 5: nil} {
			if v == 0 {
				continue
			}
			e.Update(func(tx *Tx) { in.Set(tx, "a", v) })
			expect(t, "what fails", tables(behind), want)
			e.Update(func(tx *Tx) { in.Set(tx, "b", 0) }) // something else is well
			if v == 4 {
				expect(t, "what fails", tables(behind), want)
			}
			e.Update(func(tx *Tx) { in.Delete(tx, "b") })
			if last == "well" {
				e.Update(func(tx *Tx) { in.Set(tx, "a", 6) })
			}
			e.Update(func(tx *Tx) { in.Delete(tx, "a") })
			expect(t, "what fails", tables(e.Declared()), nil)
		}
	}
	e.Update(func(tx *Tx) { in.Set(tx, "a", 5) })
	expect(t, "what fails", tables(e.Declared()), []string{"later"})
	expect(t, "what fails", tables(behind), nil)
	e.Update(func(tx *Tx) { in.Set(tx, "a", 1) })
	if f := e.Failing(behind); len(f) != 1 || f[0].Key != "a" || f[0].Value != 1 || e.Stats()[1].Failing != 1 {
		t.Errorf("what fails is %v", f)
	}
}
