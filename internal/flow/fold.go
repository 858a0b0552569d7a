package flow

// Fold declares a table that keeps an aggregate of another by difference: each
// entry of src belongs to the keys that by yields, add takes an entry into the
// aggregate and sub takes it out again. A key without entries has no aggregate.
// For law 5 add and sub commute and undo each other; they and by depend on
// nothing but their arguments. An entry for which by panics belongs to no key.
func Fold[I, K comparable, V, A any](
	name string, src Table[K, V],
	by func(k K, v V, yield func(I)),
	add, sub func(a A, k K, v V) A,
	opts ...Option[A],
) *Derived[I, A] {
	return fold(name, by, add, sub, []Table[K, V]{src}, opts...)
}

func fold[I, K comparable, V, A any](
	name string,
	by func(k K, v V, yield func(I)),
	add, sub func(a A, k K, v V) A,
	sources []Table[K, V],
	opts ...Option[A],
) *Derived[I, A] {
	f := &folder[I, K, V, A]{sums: map[I]*sum[A]{}}
	f.init(sources[0].base().engine, name, f, opts)
	f.worker = f
	f.unit.of = &f.worker
	f.by = newSorter(&f.meta, by)
	for _, src := range sources {
		from := src.base()
		from.hooks = append(from.hooks, func(c *cell[K, V], old V, had bool) {
			f.apply(sub, -1, c.key, old, had)
			f.apply(add, +1, c.key, c.val, c.ok)
		})
	}
	return &f.Derived
}

// folder is the table and its one unit. The unit publishes, once in a transaction, the
// aggregates that have changed.
type folder[I, K comparable, V, A any] struct {
	Derived[I, A]
	unit
	by    *sorter[I, K, V]
	sums  map[I]*sum[A]
	moved []I
}

type sum[A any] struct {
	val   A
	n     int // entries
	moved bool
}

func (f *folder[I, K, V, A]) key(*unit) any { return f.name }

func (f *folder[I, K, V, A]) apply(fn func(A, K, V) A, n int, k K, v V, there bool) {
	f.by.sort(k, v, there)
	for _, i := range f.by.keys {
		s := f.sums[i]
		if s == nil {
			s = &sum[A]{}
			f.sums[i] = s
		}
		if !s.moved {
			s.moved = true
			f.moved = append(f.moved, i)
		}
		if s.n += n; s.n == 0 {
			*s = sum[A]{moved: true} // nothing is left of former entries, such as a rounding error
			if len(f.engine.failing) > 0 {
				f.engine.heals(s, nil)
			}
			continue
		}
		f.step(s, fn, k, v)
	}
	if len(f.moved) > 0 {
		f.wake()
	}
}

// step changes an aggregate. If the function panics, the aggregate stays as it is.
func (f *folder[I, K, V, A]) step(s *sum[A], fn func(A, K, V) A, k K, v V) {
	returned := false
	defer func() {
		if !returned {
			f.engine.fails(s, nil, f.failed(k, v, recover()))
		}
	}()
	val := fn(s.val, k, v)
	s.val, returned = val, true
}

func (f *folder[I, K, V, A]) run(*unit) {
	for _, i := range f.moved {
		s, c := f.sums[i], f.at(i)
		s.moved = false
		if s.n > 0 {
			f.put(c, s.val)
			continue
		}
		delete(f.sums, i)
		f.drop(c)
	}
	f.moved = emptied(f.moved)
}

// Keys declares a table of the keys under which entries of some tables stand, at least
// one table. A key changes with its first entry and with its last one. A function that
// only needs to know whether there are entries does not run again for the second.
func Keys[I, K comparable, V any](name string, by func(k K, v V, yield func(I)), sources ...Table[K, V]) *Derived[I, struct{}] {
	keep := func(s struct{}, _ K, _ V) struct{} { return s }
	return fold(name, by, keep, keep, sources, Equal(Same[struct{}]))
}

// Count declares a table of how many entries of src stand under each key.
func Count[I, K comparable, V any](name string, src Table[K, V], by func(k K, v V, yield func(I))) *Derived[I, int] {
	return CountAll(name, by, src)
}

// CountAll is Count over the entries of several tables, at least one.
func CountAll[I, K comparable, V any](name string, by func(k K, v V, yield func(I)), sources ...Table[K, V]) *Derived[I, int] {
	return fold(name, by,
		func(n int, _ K, _ V) int { return n + 1 },
		func(n int, _ K, _ V) int { return n - 1 },
		sources, Equal(Same[int]))
}
