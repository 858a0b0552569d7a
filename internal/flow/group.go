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
	x.created = append(x.created, func(b *bucket[I, K, V]) {
		if !b.feeds(g) {
			u := &groupUnit[I, K, V, O]{of: g, src: b}
			u.start(u, &b.watch)
		}
	})
	return &g.Derived
}

type grouper[I, K comparable, V, O any] struct {
	Derived[I, O]
	index *Index[I, K, V]
	fn    func(c *Ctx, i I, members Members[K, V]) (O, bool)
}

type groupUnit[I, K comparable, V, O any] struct {
	unit
	out outputs[I, O]
	of  *grouper[I, K, V, O]
	src *bucket[I, K, V]
}

func (u *groupUnit[I, K, V, O]) table() queue { return u.of }
func (u *groupUnit[I, K, V, O]) key() any     { return u.src.key }

func (u *groupUnit[I, K, V, O]) run() {
	t := &u.of.Derived
	if len(u.src.cells) == 0 {
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
	c := t.begin(&u.unit, &u.src.watch)
	u.src.sort(u.of.index.compare)
	if o, ok := u.of.fn(c, u.src.key, Members[K, V]{u.src.cells}); ok {
		t.emit(u.src.key, o)
	}
	returned = true
}
