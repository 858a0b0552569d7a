package flow

// Derived is a table computed from others.
type Derived[K comparable, V any] struct {
	store[K, V]
	worker    worker // the table itself, which its units point to
	queue     []*unit
	contested []*unit // units that emit what is another's
	// more has the cells of units that emit several, but for the first. Nearly
	// always a unit emits one, so that few are here.
	more map[*unit][]*cell[K, V]

	// The fields below are scratch space of the run under way.
	ctx       Ctx
	keys      []K
	vals      []V
	old, next []*cell[K, V]
}

func (t *Derived[K, V]) enqueue(u *unit) {
	if len(t.queue) == 0 {
		t.isDue()
	}
	t.queue = append(t.queue, u)
}

func (t *Derived[K, V]) settle() {
	// Units are woken by earlier tables only, so the queue does not grow while
	// it is worked off.
	for _, u := range t.queue {
		t.work(u)
	}
	t.queue = emptied(t.queue)
	// An output key that moves from one unit to another is free only after the
	// unit that had it has run.
	again := t.contested
	t.contested = nil
	for _, u := range again {
		if u.again = false; u.source() != nil {
			t.work(u)
		}
	}
	for _, u := range t.contested {
		t.engine.fails(u, nil, t.failed((*u.of).key(u), nil, "flow: an output key is emitted twice"))
	}
	t.old, t.next = emptied(t.old[:cap(t.old)]), emptied(t.next[:cap(t.next)])
}

func (t *Derived[K, V]) work(u *unit) {
	t.runs++
	u.dirty = false
	(*u.of).run(u)
}

// emit is what table functions emit by.
func (t *Derived[K, V]) emit(k K, v V) {
	t.keys, t.vals = append(t.keys, k), append(t.vals, v)
}

// begin frames a run with end: between them a function's reads and outputs are
// recorded.
func (t *Derived[K, V]) begin(u *unit) *Ctx {
	t.ctx.begin(u)
	return &t.ctx
}

// end publishes what was emitted if the function has returned. Otherwise the
// unit's last outputs stay, and what it has read until then will wake it.
func (t *Derived[K, V]) end(u *unit, returned bool) {
	t.ctx.end()
	if returned {
		if len(t.engine.failing) > 0 {
			t.engine.heals(u, nil)
		}
		if !t.publish(u) && !u.again {
			u.again = true
			t.contested = append(t.contested, u)
		}
	}
	t.keys, t.vals = emptied(t.keys), emptied(t.vals)
}

// retire ends a unit whose source is gone.
func (t *Derived[K, V]) retire(u *unit) {
	if len(t.engine.failing) > 0 {
		t.engine.heals(u, nil)
	}
	t.publish(u)
	u.end()
}

// outputs appends the cells that a unit's last run emitted.
func (t *Derived[K, V]) outputs(u *unit, cells []*cell[K, V]) []*cell[K, V] {
	if u.out == nil {
		return cells
	}
	cells = append(cells, cellOf[K, V](u.out))
	if u.several {
		cells = append(cells, t.more[u]...)
	}
	return cells
}

func (t *Derived[K, V]) setOutputs(u *unit, cells []*cell[K, V]) {
	u.out = nil
	if len(cells) > 0 {
		u.out = &cells[0].watch
	}
	switch {
	case len(cells) > 1:
		if t.more == nil {
			t.more = map[*unit][]*cell[K, V]{}
		}
		t.more[u] = append([]*cell[K, V](nil), cells[1:]...)
	case u.several:
		delete(t.more, u)
	}
	u.several = len(cells) > 1
}

type mark uint8

const (
	unmarked mark = iota
	mine          // an output of the unit's last run
	emitted       // an output of this run
)

// publish makes what was emitted the unit's outputs. If a key was emitted twice,
// by this unit or by another, it returns false, and of the unit's outputs those
// stay that were emitted again, with their old values.
func (t *Derived[K, V]) publish(u *unit) bool {
	old := t.outputs(u, t.old[:0])
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
		t.setOutputs(u, kept)
		for _, c := range next {
			c.mark = unmarked
			t.released(&c.watch)
		}
		return false
	}
	t.setOutputs(u, next)
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
