package flow

import (
	"reflect"
	"unsafe"
)

// Table is a table that can be read, indexed and derived from.
type Table[K comparable, V any] interface {
	table
	base() *store[K, V]
}

// store is the part that every table shares: cells by key, their readers, and the hooks
// of the table as a whole.
type store[K comparable, V any] struct {
	meta
	home
	cells   set[K, *cell[K, V]]
	live    int // cells that hold a value; the others only have readers
	equal   func(a, b V) bool
	hooks   []func(c *cell[K, V], old V, had bool)
	watched bool
	before  map[K]was[V] // values at the start of the transaction, watched tables only
}

type was[V any] struct {
	value V
	had   bool
}

// cell is one key's place. It stays the same for as long as the key has a value
// or a reader.
type cell[K comparable, V any] struct {
	watch
	key K
	val V
}

func (c *cell[K, V]) is(k K) bool { return c.key == k }

// cellOf returns the cell that a watch is the first field of. Of many cells hardly any are in the
// processor's caches, nor is what leads to them: to look for one in its set costs as much as most
// runs do.
func cellOf[K comparable, V any](w *watch) *cell[K, V] {
	return (*cell[K, V])(unsafe.Pointer(w)) //nolint:gosec // see the test
}

// Option adjusts a table.
type Option[V any] func(*options[V])

type options[V any] struct {
	equal func(a, b V) bool
}

// Equal sets how two values of a table compare. Without it a value's own method
// Equal(V) bool decides, else reflect.DeepEqual, which is slow: a table that
// changes often should have one of the others.
func Equal[V any](fn func(a, b V) bool) Option[V] {
	return func(o *options[V]) { o.equal = fn }
}

// Same is an Equal for comparable values, pointers that are replaced whenever
// their target changes among them.
func Same[V comparable](a, b V) bool { return a == b }

func (s *store[K, V]) init(e *Engine, name string, self table, opts []Option[V]) {
	o := options[V]{equal: defaultEqual[V]()}
	for _, opt := range opts {
		opt(&o)
	}
	s.equal = o.equal
	s.release = s.released
	s.meta = e.declare(name, self)
}

func defaultEqual[V any]() func(a, b V) bool {
	type comparer interface{ Equal(other V) bool }
	var zero V
	if _, ok := any(zero).(comparer); !ok {
		return func(a, b V) bool { return reflect.DeepEqual(a, b) }
	}
	if reflect.TypeFor[V]().Kind() != reflect.Pointer {
		return func(a, b V) bool { return any(a).(comparer).Equal(b) }
	}
	return func(a, b V) bool {
		if x, y := any(a), any(b); x == any(zero) || y == any(zero) {
			return x == y
		}
		return any(a).(comparer).Equal(b)
	}
}

func (s *store[K, V]) info() *meta        { return &s.meta }
func (s *store[K, V]) base() *store[K, V] { return s }
func (s *store[K, V]) len() int           { return s.live }

// at returns a key's cell and makes it if need be.
func (s *store[K, V]) at(k K) *cell[K, V] {
	h := hash(k)
	c := s.cells.get(k, h)
	if c == nil {
		c = &cell[K, V]{home: &s.home, hash: h, key: k}
		s.cells.put(c)
	}
	return c
}

// released forgets a cell that has neither a value nor a reader.
func (s *store[K, V]) released(w *watch) {
	if w.ok || w.first != nil {
		return
	}
	if slot, _, ok := s.cells.find(w); ok {
		s.cells.cut(slot)
	}
}

func (s *store[K, V]) entries(yield func(K, V) bool) {
	for _, c := range s.cells.slots {
		if c != nil && c.ok && !yield(c.key, c.val) {
			return
		}
	}
}

func (s *store[K, V]) dump(yield func(key, value any) bool) {
	s.entries(func(k K, v V) bool { return yield(k, v) })
}

// put gives a key a value. If that changes something, readers and hooks are told.
func (s *store[K, V]) put(c *cell[K, V], v V) {
	if c.ok && s.same(c, v) {
		return
	}
	s.changed(c, v, true)
}

// same compares two values. Values whose comparison panics count as different.
func (s *store[K, V]) same(c *cell[K, V], v V) (same bool) {
	returned := false
	defer func() {
		if !returned {
			_ = s.failed(c.key, nil, recover())
		}
	}()
	same = s.equal(c.val, v)
	returned = true
	return same
}

// drop takes a key's value away.
func (s *store[K, V]) drop(c *cell[K, V]) {
	if c.ok {
		var none V
		s.changed(c, none, false)
	}
	s.released(&c.watch)
}

func (s *store[K, V]) changed(c *cell[K, V], v V, ok bool) {
	old, had := c.val, c.ok
	if s.watched {
		if s.before == nil {
			s.before = map[K]was[V]{}
			s.engine.changed = append(s.engine.changed, s)
		}
		if _, seen := s.before[c.key]; !seen {
			s.before[c.key] = was[V]{old, had}
		}
	}
	switch {
	case ok && !had:
		s.live++
	case !ok && had:
		s.live--
	}
	c.val, c.ok = v, ok
	s.changes++
	c.wake()
	for _, hook := range s.hooks {
		hook(c, old, had)
	}
}

// finish hands the transaction's changes to the commit.
func (s *store[K, V]) finish() {
	out := make([]Change[K, V], 0, len(s.before))
	for k, w := range s.before {
		ch := Change[K, V]{Key: k, Old: w.value, Had: w.had}
		c := s.cells.get(k, hash(k))
		if c != nil && c.ok {
			ch.New, ch.Has = c.val, true
		}
		if ch.Had == ch.Has && (!ch.Has || s.same(c, ch.Old)) {
			continue // the value has changed back within the transaction
		}
		out = append(out, ch)
	}
	s.before = nil
	if len(out) == 0 {
		return
	}
	c := s.engine.commit
	if c.changes == nil {
		c.changes = map[int]any{}
	}
	c.changes[s.id] = out
}

// Change is one key's difference across a transaction.
type Change[K comparable, V any] struct {
	Key      K
	Old, New V
	Had, Has bool
}

// Watch makes the table's changes part of every commit. It is called before the
// first transaction.
func Watch[K comparable, V any](t Table[K, V]) { t.base().watched = true }

// Changes returns what a commit changed in a watched table, in no order.
func Changes[K comparable, V any](c *Commit, t Table[K, V]) []Change[K, V] {
	out, _ := c.changes[t.info().id].([]Change[K, V])
	return out
}

// Input is a table whose values come from outside.
type Input[K comparable, V any] struct {
	store[K, V]
}

// NewInput declares an input table.
func NewInput[K comparable, V any](e *Engine, name string, opts ...Option[V]) *Input[K, V] {
	t := &Input[K, V]{}
	t.init(e, name, t, opts)
	return t
}

// Set gives a key a value.
func (t *Input[K, V]) Set(tx *Tx, k K, v V) {
	t.licensed(tx)
	t.put(t.at(k), v)
}

// Delete takes a key's value away; a key without one is no error.
func (t *Input[K, V]) Delete(tx *Tx, k K) {
	t.licensed(tx)
	if c := t.cells.get(k, hash(k)); c != nil {
		t.drop(c)
	}
}

func (t *Input[K, V]) licensed(tx *Tx) {
	if tx.engine != t.engine {
		panic("flow: input " + t.name + " written outside its engine's transaction")
	}
}

func (t *Input[K, V]) settle() {}

// Asked yields, in no order, the keys of an input that table functions have read,
// whether there is a value or not. A source that fetches on demand learns here what to
// fetch. Like All it is for outside of transactions.
func (t *Input[K, V]) Asked(yield func(K) bool) {
	for _, c := range t.cells.slots {
		if c != nil && c.first != nil && !yield(c.key) {
			return
		}
	}
}

// AskedVersion is another number whenever Asked yields other keys. It costs nothing
// to ask for, however many these are.
func (t *Input[K, V]) AskedVersion() uint64 { return t.asks }
