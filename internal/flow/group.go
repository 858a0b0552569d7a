package flow

// Group declares a table that derives from an index: fn is run for each index
// key with all that stands under it, in order, and returns the entry for that
// key, if there is to be one.
func Group[I, K comparable, V, O any](
	name string, x *Index[I, K, V],
	fn func(c *Ctx, i I, members Members[K, V]) (O, bool),
	opts ...Option[O],
) *Derived[I, O] {
	g := &grouper[I, K, V, O]{index: x, fn: fn}
	g.init(x.src.engine, name, g, opts)
	g.ctx.limit = g.id
	g.worker = g
	x.created = append(x.created, func(b *bucket[I, K, V]) {
		if !b.feeds(&g.worker) {
			start(&g.worker, &b.watch)
		}
	})
	return &g.Derived
}

type grouper[I, K comparable, V, O any] struct {
	Derived[I, O]
	index *Index[I, K, V]
	fn    func(c *Ctx, i I, members Members[K, V]) (O, bool)
}

func (g *grouper[I, K, V, O]) key(u *unit) any { return bucketOf[I, K, V](u.source()).key }

func (g *grouper[I, K, V, O]) run(u *unit) {
	src := bucketOf[I, K, V](u.source())
	if len(src.cells) == 0 {
		g.retire(u)
		return
	}
	returned := false
	defer func() {
		if !returned {
			g.engine.fails(u, nil, g.failed(src.key, nil, recover()))
		}
		g.end(u, returned)
	}()
	c := g.begin(u)
	src.sort(g.index.compare)
	if o, ok := g.fn(c, src.key, Members[K, V]{src.cells}); ok {
		g.emit(src.key, o)
	}
	if g.engine.trip != nil {
		g.engine.trip(g.name, src.key)
	}
	returned = true
}
