package flow

import (
	"iter"
	"slices"
	"sort"
	"sync"
	"unsafe"
)

// Index orders the entries of a table under other keys: slices by Service,
// virtual hosts by route table. An entry may stand under several.
type Index[I, K comparable, V any] struct {
	home
	src     *store[K, V] // the table of the index that was declared last
	by      func(k K, v V, yield func(I))
	buckets set[I, *bucket[I, K, V]]
	compare func(a, b K) int
	created []func(*bucket[I, K, V])
	viewing sync.Mutex // held by a view that looks whether a bucket is sorted
}

// bucket holds what stands under one index key, sorted by the entries' keys.
type bucket[I, K comparable, V any] struct {
	watch
	key   I
	cells []*cell[K, V]
}

func (b *bucket[I, K, V]) is(i I) bool { return b.key == i }

// bucketOf returns the bucket that a watch is the first field of, as cellOf does.
func bucketOf[I, K comparable, V any](w *watch) *bucket[I, K, V] {
	return (*bucket[I, K, V])(unsafe.Pointer(w)) //nolint:gosec // see the test
}

// NewIndex declares an index over a table. by yields the keys under which an
// entry stands; it depends on nothing but the entry, and an entry for which it
// panics stands nowhere. compare is a total order of the table's keys.
func NewIndex[I, K comparable, V any](t Table[K, V], by func(k K, v V, yield func(I)), compare func(a, b K) int) *Index[I, K, V] {
	x := &Index[I, K, V]{by: by, compare: compare}
	x.release = x.released
	x.Also(t)
	return x
}

// Also makes the entries of a further table stand in the index. Once settled, no
// key may be in two of its tables. It is called before the index is used.
func (x *Index[I, K, V]) Also(t Table[K, V]) {
	src := t.base()
	if x.src == nil || x.src.id < src.id {
		x.src = src
	}
	was, is := newSorter(&src.meta, x.by), newSorter(&src.meta, x.by)
	is.as = was
	src.hooks = append(src.hooks, func(c *cell[K, V], old V, had bool) {
		was.sort(c.key, old, had)
		is.sort(c.key, c.val, c.ok)
		for _, i := range was.keys {
			b := x.buckets.get(i, hash(i))
			if !slices.Contains(is.keys, i) {
				b.remove(c, x.compare)
			}
			b.wake()
			x.released(&b.watch)
		}
		for _, i := range is.keys {
			if !slices.Contains(was.keys, i) {
				b := x.at(i)
				x.add(b, c)
				b.wake()
			}
		}
	})
}

func (x *Index[I, K, V]) at(i I) *bucket[I, K, V] {
	h := hash(i)
	b := x.buckets.get(i, h)
	if b == nil {
		b = &bucket[I, K, V]{home: &x.home, hash: h, key: i}
		x.buckets.put(b)
	}
	return b
}

// released forgets a bucket that has neither members nor readers.
func (x *Index[I, K, V]) released(w *watch) {
	if w.first != nil {
		return
	}
	if slot, b, ok := x.buckets.find(w); ok && len(b.cells) == 0 {
		x.buckets.cut(slot)
	}
}

func (x *Index[I, K, V]) add(b *bucket[I, K, V], c *cell[K, V]) {
	b.cells = append(b.cells, c)
	b.pending = min(b.pending+1, few+1)
	if len(b.cells) == 1 {
		for _, fn := range x.created {
			fn(b)
		}
	}
}

func (b *bucket[I, K, V]) remove(c *cell[K, V], compare func(a, b K) int) {
	i := b.find(c, compare)
	if b.pending <= few && i >= len(b.cells)-int(b.pending) {
		b.pending--
	}
	b.cells = slices.Delete(b.cells, i, i+1)
	if len(b.cells) == 0 {
		b.cells = nil
	}
}

// many cells are searched by their keys, fewer one by one: pointers lie side by side, and keys all over the
// memory.
const many = 256

// find returns the place of a cell.
func (b *bucket[I, K, V]) find(c *cell[K, V], compare func(a, b K) int) int {
	if len(b.cells) < many {
		return slices.Index(b.cells, c)
	}
	b.sort(compare)
	i := b.search(c.key, len(b.cells), compare)
	for b.cells[i] != c { // a key that moves between tables is here twice for a while
		i++
	}
	return i
}

func (b *bucket[I, K, V]) search(k K, n int, compare func(a, b K) int) int {
	return sort.Search(n, func(i int) bool { return compare(b.cells[i].key, k) >= 0 })
}

// few cells are put in their places one by one.
const few = 4

// sort puts appended cells in their places. It inserts a few and sorts many, so that a
// single change moves memory once and a bulk load takes n log n.
func (b *bucket[I, K, V]) sort(compare func(a, b K) int) {
	if b.pending == 0 {
		return
	}
	n := len(b.cells)
	if b.pending <= few {
		for end := n - int(b.pending); end < n; end++ {
			c := b.cells[end]
			i := b.search(c.key, end, compare)
			copy(b.cells[i+1:end+1], b.cells[i:end])
			b.cells[i] = c
		}
	} else {
		slices.SortFunc(b.cells, func(a, c *cell[K, V]) int { return compare(a.key, c.key) })
	}
	b.pending = 0
}

// Members is what stands under one index key, in order. It is valid only during
// the call that it was handed to.
type Members[K comparable, V any] struct {
	cells []*cell[K, V]
}

// Len returns the number of entries.
func (m Members[K, V]) Len() int { return len(m.cells) }

// At returns the i-th entry.
func (m Members[K, V]) At(i int) (K, V) { return m.cells[i].key, m.cells[i].val }

// All yields the entries in order.
func (m Members[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, c := range m.cells {
			if !yield(c.key, c.val) {
				return
			}
		}
	}
}

// Select reads what stands under an index key, in order.
func Select[I, K comparable, V any](c *Ctx, x *Index[I, K, V], i I) Members[K, V] {
	c.check(&x.src.meta)
	if c.unit == nil {
		b := x.buckets.get(i, hash(i))
		if b == nil {
			return Members[K, V]{}
		}
		x.viewing.Lock() // several views may read it at once: the first one sorts it
		b.sort(x.compare)
		x.viewing.Unlock()
		return Members[K, V]{b.cells}
	}
	b := x.at(i)
	c.depend(&b.watch)
	b.sort(x.compare)
	return Members[K, V]{b.cells}
}

// sorter finds the keys that an entry belongs to, each once. A function that panics
// yields none, both when the value comes and when it goes.
type sorter[I, K comparable, V any] struct {
	of    *meta
	by    func(k K, v V, yield func(I))
	yield func(I)
	keys  []I // of the last entry
	as    any // whose failures it has: the sorter that sorts an entry last takes back what the one before said
}

func newSorter[I, K comparable, V any](of *meta, by func(k K, v V, yield func(I))) *sorter[I, K, V] {
	s := &sorter[I, K, V]{of: of, by: by}
	s.as = s
	s.yield = func(i I) {
		if !slices.Contains(s.keys, i) {
			s.keys = append(s.keys, i)
		}
	}
	return s
}

// sort finds the keys of an entry. An entry that is not there has none.
func (s *sorter[I, K, V]) sort(k K, v V, there bool) {
	s.keys = emptied(s.keys)
	if len(s.of.engine.failing) > 0 {
		s.of.engine.heals(s.as, k)
	}
	if !there {
		return
	}
	returned := false
	defer func() {
		if !returned {
			s.keys = emptied(s.keys)
			s.of.engine.fails(s.as, k, s.of.failed(k, v, recover()))
		}
	}()
	s.by(k, v, s.yield)
	returned = true
}
