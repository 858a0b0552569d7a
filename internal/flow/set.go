package flow

import "hash/maphash"

// set finds nodes by key. A node carries its key and its hash, so the set itself needs
// one pointer for a node and some free slots. A Go map would hold every key a second
// time, and keys take most of the memory of a small entry. It is a table with linear
// probing, at most three quarters full.
type set[K comparable, N node[K]] struct {
	slots []N // a power of two long, or nil
	n     int
}

// node is what a set holds: a cell or a bucket.
type node[K comparable] interface {
	comparable
	self() *watch
	is(k K) bool
}

const smallest = 8 // slots of the smallest set that is not empty

var seed = maphash.MakeSeed()

func hash[K comparable](k K) uint32 { return uint32(maphash.Comparable(seed, k)) }

// get returns the node with a key, or nil.
func (s *set[K, N]) get(k K, h uint32) (none N) {
	if s.n == 0 {
		return none
	}
	mask := len(s.slots) - 1
	for i := int(h) & mask; s.slots[i] != none; i = (i + 1) & mask {
		if n := s.slots[i]; n.self().hash == h && n.is(k) {
			return n
		}
	}
	return none
}

// put adds a node whose key is not in the set.
func (s *set[K, N]) put(n N) {
	if 4*(s.n+1) > 3*len(s.slots) {
		s.resize(max(smallest, 2*len(s.slots)))
	}
	s.place(n)
	s.n++
}

func (s *set[K, N]) place(n N) {
	var none N
	mask := len(s.slots) - 1
	i := int(n.self().hash) & mask
	for s.slots[i] != none {
		i = (i + 1) & mask
	}
	s.slots[i] = n
}

func (s *set[K, N]) resize(size int) {
	var none N
	old := s.slots
	s.slots = make([]N, size)
	for _, n := range old {
		if n != none {
			s.place(n)
		}
	}
}

// find returns the slot and the node that a watch is a part of.
func (s *set[K, N]) find(w *watch) (slot int, n N, ok bool) {
	if s.n == 0 {
		return 0, n, false
	}
	var none N
	mask := len(s.slots) - 1
	for i := int(w.hash) & mask; s.slots[i] != none; i = (i + 1) & mask {
		if s.slots[i].self() == w {
			return i, s.slots[i], true
		}
	}
	return 0, none, false
}

// cut removes the node in a slot, and moves up the nodes behind it that had to go
// further because of it.
func (s *set[K, N]) cut(slot int) {
	var none N
	mask := len(s.slots) - 1
	hole := slot
	for i := (hole + 1) & mask; s.slots[i] != none; i = (i + 1) & mask {
		home := int(s.slots[i].self().hash) & mask
		if (i-home)&mask >= (i-hole)&mask {
			s.slots[hole] = s.slots[i]
			hole = i
		}
	}
	s.slots[hole] = none
	s.n--
	switch {
	case s.n == 0:
		s.slots = nil
	case 8*s.n < len(s.slots) && len(s.slots) > smallest:
		s.resize(max(smallest, len(s.slots)/4))
	}
}
