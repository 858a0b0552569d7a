package flow

// Map declares a table that derives from another entry by entry: fn is run for
// each entry of src and emits any number of entries.
func Map[K, K2 comparable, V, V2 any](
	name string, src Table[K, V],
	fn func(c *Ctx, k K, v V, emit func(K2, V2)),
	opts ...Option[V2],
) *Derived[K2, V2] {
	from := src.base()
	m := &mapper[K, K2, V, V2]{fn: fn}
	m.init(from.engine, name, m, opts)
	m.ctx.limit = m.id
	m.emitter = m.emit
	from.hooks = append(from.hooks, func(c *cell[K, V], _ V, had bool) {
		// A cell that lost its value and got one back within one transaction
		// still has its unit.
		if c.ok && !had && !c.feeds(m) {
			u := &mapUnit[K, K2, V, V2]{of: m, src: c}
			u.start(u, &c.watch)
		}
	})
	return &m.Derived
}

type mapper[K, K2 comparable, V, V2 any] struct {
	Derived[K2, V2]
	fn      func(c *Ctx, k K, v V, emit func(K2, V2))
	emitter func(K2, V2) // the method emit as a value, which is made once
}

type mapUnit[K, K2 comparable, V, V2 any] struct {
	unit
	out outputs[K2, V2]
	of  *mapper[K, K2, V, V2]
	src *cell[K, V]
}

func (u *mapUnit[K, K2, V, V2]) table() queue { return u.of }
func (u *mapUnit[K, K2, V, V2]) key() any     { return u.src.key }

func (u *mapUnit[K, K2, V, V2]) run() {
	t := &u.of.Derived
	if !u.src.ok {
		t.retire(&u.unit, &u.out)
		return
	}
	returned := false
	defer func() {
		if !returned {
			t.failed(u.src.key, recover())
		}
		t.end(&u.unit, &u.out, returned)
	}()
	u.of.fn(t.begin(&u.unit, &u.src.watch), u.src.key, u.src.val, u.of.emitter)
	returned = true
}
