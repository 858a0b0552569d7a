package flow

// A dependency is an edge between what is read and the unit of work that read it. An
// edge lies in its unit's array and is linked into the list of what it reads, so that
// it is cut in constant time however many readers a value has: a Gateway is read by
// each of its thousands of routes. Edges, cells and units take most of the engine's
// memory, so each of their fields counts.

// watch is the list of the edges to something that can be read. It is a part of
// everything that can be read.
type watch struct {
	first   *edge
	home    *home
	hash    uint32 // of the key, for the set that holds it
	ok      bool   // cells only: there is a value
	mark    mark   // cells only: see Derived.publish
	pending uint8  // buckets only: cells appended since the last sort, or more
}

// home is where something readable is kept. release is called when the last reader is
// gone, and removes what nothing needs any more.
type home struct {
	release func(w *watch)
	asks    uint64 // how often something got its first reader, or lost its last one
	noting  bool
	noted   []*watch // what got its first reader since Missed was called, if noting
}

func (w *watch) self() *watch { return w }

func (w *watch) wake() {
	for e := w.first; e != nil; e = e.next {
		e.unit.wake()
	}
}

// edge says that a unit has read something.
type edge struct {
	on         *watch
	unit       *unit
	prev, next *edge // the other readers
}

func (e *edge) link(u *unit, on *watch) {
	*e = edge{on: on, unit: u, next: on.first}
	if e.next != nil {
		e.next.prev = e
	} else {
		on.home.asks++
		on.home.note(on)
	}
	on.first = e
}

// replace takes the place of an edge that is moved.
func (e *edge) replace(old *edge) {
	*e = *old
	if e.prev != nil {
		e.prev.next = e
	} else {
		e.on.first = e
	}
	if e.next != nil {
		e.next.prev = e
	}
}

func (e *edge) unlink() {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		e.on.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	on := e.on
	*e = edge{}
	if on.first == nil {
		on.home.asks++
		on.home.release(on)
	}
}

// unit is one piece of work: a table's function applied to one key. It lives for
// as long as it depends on something. Its table knows its source and its output by
// what can be read of them, so that a unit is of one type, and small.
type unit struct {
	of      *worker // one pointer, where an interface would be two
	about   edge    // to its source: in the unit, because most read nothing else
	deps    []edge  // to what it has read beside that, in the order of reading
	out     *watch  // the cell that its last run emitted, or nil
	several bool    // it emitted more cells than that one: its table has them
	dirty   bool    // in its table's queue
	again   bool    // among its table's contested units
}

// worker is a table that units do the work of.
type worker interface {
	enqueue(u *unit)
	run(u *unit)
	key(u *unit) any // of a unit's source
}

func (u *unit) wake() {
	if !u.dirty {
		u.dirty = true
		(*u.of).enqueue(u)
	}
}

// start makes a unit with its source, so that the source knows it before the first
// run, and gives it its first run.
func start(of *worker, source *watch) {
	u := &unit{of: of}
	u.about.link(u, source)
	u.wake()
}

// source is what a unit's work is about; nil once it has ended.
func (u *unit) source() *watch { return u.about.on }

// end forgets all that a unit depends on.
func (u *unit) end() {
	u.about.unlink()
	u.cut(0)
}

// feeds reports whether something is already the source of a unit of a table.
func (w *watch) feeds(of *worker) bool {
	for e := w.first; e != nil; e = e.next {
		if e == &e.unit.about && e.unit.of == of {
			return true
		}
	}
	return false
}

// cut removes the dependencies from position n on.
func (u *unit) cut(n int) {
	for i := n; i < len(u.deps); i++ {
		u.deps[i].unlink()
	}
	if n == 0 {
		u.deps = nil
		return
	}
	u.deps = u.deps[:n]
}

// Ctx is a table function's view of the other tables. It is valid only during
// the call that it was handed to.
type Ctx struct {
	unit  *unit // nil when nothing is to be remembered
	limit int   // tables from this one on may not be read
	read  int   // unit.deps[:read] were read again in this run
	fresh []*watch
}

// begin starts to record the reads of a unit's run.
func (c *Ctx) begin(u *unit) {
	c.unit, c.read = u, 0
}

// depend records a read. Runs mostly read the same things in the same order, so
// the common case compares one pointer and changes nothing.
func (c *Ctx) depend(on *watch) {
	if len(c.fresh) == 0 && c.read < len(c.unit.deps) && c.unit.deps[c.read].on == on {
		c.read++
		return
	}
	c.fresh = append(c.fresh, on)
}

// end makes the recorded reads the unit's dependencies. New edges come before old
// ones go, so that what is in both is not forgotten in between.
func (c *Ctx) end() {
	u := c.unit
	c.unit = nil
	if len(c.fresh) == 0 {
		u.cut(c.read)
		return
	}
	old := u.deps
	u.deps = make([]edge, c.read+len(c.fresh))
	for i := range c.read {
		u.deps[i].replace(&old[i])
	}
	for i, on := range c.fresh {
		u.deps[c.read+i].link(u, on)
	}
	for i := c.read; i < len(old); i++ {
		old[i].unlink()
	}
	c.fresh = emptied(c.fresh)
}

// emptied returns a scratch slice for reuse. It holds nothing, and space that only a
// bulk load needed is given back.
func emptied[T any](s []T) []T {
	if cap(s) > 1024 {
		return nil
	}
	clear(s)
	return s[:0]
}

func (c *Ctx) check(m *meta) {
	if m.id >= c.limit {
		panic("flow: table " + m.name + " is read by a table declared before it")
	}
}

// Get reads one key of a table.
func Get[K comparable, V any](c *Ctx, t Table[K, V], k K) (V, bool) {
	s := t.base()
	c.check(&s.meta)
	if c.unit == nil {
		if x := s.cells.get(k, hash(k)); x != nil && x.ok {
			return x.val, true
		}
		var none V
		return none, false
	}
	x := s.at(k)
	c.depend(&x.watch)
	return x.val, x.ok
}

// All yields every entry of a table in no order. It is for views: a table
// function that depended on everything would run at every change.
func All[K comparable, V any](c *Ctx, t Table[K, V]) func(yield func(K, V) bool) {
	s := t.base()
	if c.unit != nil {
		panic("flow: All is for views; table " + s.name + " was read by a table function")
	}
	return s.entries
}
