package flow

import "time"

// Derived is a table computed from others.
type Derived[K comparable, V any] struct {
	store[K, V]
	queue     []*unit
	contested []*unit // units that emit a key of another unit

	// The fields below are scratch space of the run under way.
	ctx       Ctx
	keys      []K
	vals      []V
	old, next []*cell[K, V]
}

func (t *Derived[K, V]) enqueue(u *unit) { t.queue = append(t.queue, u) }

func (t *Derived[K, V]) settle() {
	if len(t.queue) == 0 {
		return
	}
	start := time.Now()
	// Units are woken by earlier tables only, so the queue does not grow while
	// it is worked off.
	for _, u := range t.queue {
		t.run(u)
	}
	t.queue = emptied(t.queue)
	// An output key that moves from one unit to another is free only after the
	// unit that had it has run.
	again := t.contested
	t.contested = nil
	for _, u := range again {
		if u.again = false; len(u.deps) > 0 {
			t.run(u)
		}
	}
	for _, u := range t.contested {
		t.failed(u.work.key(), "flow: an output key is emitted twice")
	}
	t.old, t.next = emptied(t.old[:cap(t.old)]), emptied(t.next[:cap(t.next)])
	t.spent += time.Since(start)
}

func (t *Derived[K, V]) run(u *unit) {
	t.runs++
	u.dirty = false
	u.work.run()
}

// emit is what table functions emit by.
func (t *Derived[K, V]) emit(k K, v V) {
	t.keys, t.vals = append(t.keys, k), append(t.vals, v)
}

// begin frames a run with end: between them a function's reads and outputs are
// recorded.
func (t *Derived[K, V]) begin(u *unit, source *watch) *Ctx {
	t.ctx.begin(u)
	t.ctx.depend(source)
	return &t.ctx
}

// end publishes what was emitted if the function has returned. Otherwise the unit keeps
// its last outputs, and runs again when something changes that it has read until then.
func (t *Derived[K, V]) end(u *unit, o *outputs[K, V], returned bool) {
	t.ctx.end()
	if returned && !t.publish(o) && !u.again {
		u.again = true
		t.contested = append(t.contested, u)
	}
	t.keys, t.vals = emptied(t.keys), emptied(t.vals)
}

// retire ends a unit whose source is gone.
func (t *Derived[K, V]) retire(u *unit, o *outputs[K, V]) {
	t.publish(o)
	u.cut(0)
}

// outputs are the cells that a unit's last run emitted. Nearly always there is one,
// which needs no slice.
type outputs[K comparable, V any] struct {
	first *cell[K, V]
	more  *[]*cell[K, V]
}

func (o *outputs[K, V]) appendTo(cells []*cell[K, V]) []*cell[K, V] {
	if o.first == nil {
		return cells
	}
	cells = append(cells, o.first)
	if o.more != nil {
		cells = append(cells, *o.more...)
	}
	return cells
}

func (o *outputs[K, V]) set(cells []*cell[K, V]) {
	*o = outputs[K, V]{}
	if len(cells) > 0 {
		o.first = cells[0]
	}
	if len(cells) > 1 {
		more := append([]*cell[K, V](nil), cells[1:]...)
		o.more = &more
	}
}

type mark uint8

const (
	unmarked mark = iota
	mine          // an output of the unit's last run
	emitted       // an output of this run
)

// publish makes what was emitted the unit's outputs. If a key was emitted twice, by
// this unit or by another one, it returns false. The unit then keeps those of its
// outputs that were emitted again, with their old values.
func (t *Derived[K, V]) publish(o *outputs[K, V]) bool {
	old := o.appendTo(t.old[:0])
	t.old = old
	if t.republish(old) {
		return true
	}
	for _, c := range old {
		c.mark = mine
	}
	next, clash := t.next[:0], false
	for _, k := range t.keys {
		c := t.at(k)
		// In a derived table a cell with a value has a unit that emitted it.
		clash = clash || c.mark == emitted || c.ok && c.mark != mine
		c.mark = emitted
		next = append(next, c)
	}
	t.next = next
	kept := old[:0]
	for _, c := range old {
		if c.mark == emitted {
			kept = append(kept, c)
			continue
		}
		c.mark = unmarked
		t.drop(c)
	}
	if clash {
		o.set(kept)
		for _, c := range next {
			c.mark = unmarked
			t.released(&c.watch)
		}
		return false
	}
	o.set(next)
	for i, c := range next {
		c.mark = unmarked
		t.put(c, t.vals[i])
	}
	return true
}

// republish is publish for the common case: the keys are those of the last run.
func (t *Derived[K, V]) republish(old []*cell[K, V]) bool {
	if len(old) != len(t.keys) {
		return false
	}
	for i, c := range old {
		if c.key != t.keys[i] {
			return false
		}
	}
	for i, c := range old {
		t.put(c, t.vals[i])
	}
	return true
}
