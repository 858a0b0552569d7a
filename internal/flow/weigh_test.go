package flow

import (
	"fmt"
	"runtime"
	"testing"
)

// weight counts what an engine is made of.
type weight struct{ entries, cells, buckets, members, units, edges int }

func (n *network) weight() weight {
	var all weight
	for _, fn := range n.weights {
		w := fn()
		all.entries += w.entries
		all.cells += w.cells
		all.buckets += w.buckets
		all.members += w.members
		all.units += w.units
		all.edges += w.edges
	}
	return all
}

func tableWeight[K comparable, V any](t Table[K, V]) func() weight {
	return func() weight {
		s := t.base()
		w := weight{entries: s.live, cells: s.cells.n}
		for _, c := range s.cells.slots {
			if c != nil {
				w.read(&c.watch)
			}
		}
		return w
	}
}

func indexWeight[I, K comparable, V any](x *Index[I, K, V]) func() weight {
	return func() weight {
		w := weight{buckets: x.buckets.n}
		for _, b := range x.buckets.slots {
			if b != nil {
				w.members += len(b.cells)
				w.read(&b.watch)
			}
		}
		return w
	}
}

func (w *weight) read(on *watch) {
	for e := on.first; e != nil; e = e.next {
		w.edges++
		if e == &e.unit.about {
			w.units++
		}
	}
}

// name is a key of the size that keys in the control plane have.
type name struct{ namespace, name string }

// TestWeight protects the memory bar of the control plane: an entry that derives
// from another and reads three more costs no more than this beside its key's
// strings and its value.
func TestWeight(t *testing.T) {
	const entries, bar = 20_000, 265
	e := New()
	src := NewInput[name, int](e, "src")
	others := NewInput[name, int](e, "others")
	out := Map("out", src, func(c *Ctx, k name, v int, emit func(name, int)) {
		for i := range 3 {
			o, _ := Get(c, others, name{"others", fmt.Sprint((v + i) % 10)})
			v += o
		}
		emit(k, v)
	})
	keys := make([]name, entries)
	for i := range keys {
		keys[i] = name{"namespace", fmt.Sprint("name-", i)}
	}
	load := func() {
		e.Update(func(tx *Tx) {
			for i, k := range keys {
				src.Set(tx, k, i)
			}
		})
	}
	load()
	full := heap()
	e.Update(func(tx *Tx) {
		for _, k := range keys {
			src.Delete(tx, k)
		}
	})
	empty := heap()
	perEntry := (int64(full) - int64(empty)) / entries
	runtime.KeepAlive(out)

	input := func() int64 {
		e := New()
		src := NewInput[name, int](e, "src")
		before := heap()
		e.Update(func(tx *Tx) {
			for i, k := range keys {
				src.Set(tx, k, i)
			}
		})
		after := heap()
		runtime.KeepAlive(src)
		return (int64(after) - int64(before)) / entries
	}()
	t.Logf("bytes per input entry %d, per derived entry %d", input, perEntry-input)
	if perEntry-input > bar {
		t.Errorf("a derived entry with three reads costs %d bytes, want at most %d", perEntry-input, bar)
	}
	runtime.KeepAlive(keys)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
