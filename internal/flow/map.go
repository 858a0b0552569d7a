package flow

// Map declares a table that derives from another entry by entry: fn is run for
// each entry of src and emits any number of entries.
func Map[K, K2 comparable, V, V2 any](
	name string, src Table[K, V],
	fn func(c *Ctx, k K, v V, emit func(K2, V2)),
	opts ...Option[V2],
) *Derived[K2, V2] {
	from := src.base()
	m := &mapper[K, K2, V, V2]{from: from, fn: fn}
	m.init(from.engine, name, m, opts)
	m.ctx.limit = m.id
	m.emitter = m.emit
	m.worker = m
	from.hooks = append(from.hooks, func(c *cell[K, V], _ V, had bool) {
		// A cell that lost its value and got one back within one transaction
		// still has its unit.
		if c.ok && !had && !c.feeds(&m.worker) {
			start(&m.worker, &c.watch)
		}
	})
	return &m.Derived
}

type mapper[K, K2 comparable, V, V2 any] struct {
	Derived[K2, V2]
	from    *store[K, V]
	fn      func(c *Ctx, k K, v V, emit func(K2, V2))
	emitter func(K2, V2) // the method emit as a value, which is made once
}

func (m *mapper[K, K2, V, V2]) key(u *unit) any { return cellOf[K, V](u.source()).key }

func (m *mapper[K, K2, V, V2]) run(u *unit) {
	src := cellOf[K, V](u.source())
	if !src.ok {
		m.retire(u)
		return
	}
	returned := false
	defer func() {
		if !returned {
			m.engine.fails(u, nil, m.failed(src.key, src.val, recover()))
		}
		m.end(u, returned)
	}()
	m.fn(m.begin(u), src.key, src.val, m.emitter)
	if m.engine.trip != nil {
		m.engine.trip(m.name, src.key)
	}
	returned = true
}
