package ratelimit

import "time"

// A ref is the place of a count in a slab. The zero ref is no place.
type ref uint32

// A count is in the list of its limit.
type count struct {
	key          Key
	limit        *limit
	end          time.Duration // of its window, since the store began
	n            uint32
	newer, older ref
}

const slabChunk = 1024

// A slab holds counts side by side: a million objects of their own would take twice the
// memory, and the garbage collector would look at each. It grows by chunks, so that nothing
// is copied. Places that are given back are used again.
type slab struct {
	chunks []*[slabChunk]count
	next   ref // the first that was never taken
	free   ref // the first of those given back, linked by older
}

func (s *slab) at(r ref) *count { return &s.chunks[r/slabChunk][r%slabChunk] }

func (s *slab) take() ref {
	if r := s.free; r != 0 {
		s.free = s.at(r).older
		return r
	}
	if s.next == 0 {
		s.next = 1
	}
	r := s.next
	if int(r/slabChunk) == len(s.chunks) {
		s.chunks = append(s.chunks, new([slabChunk]count))
	}
	s.next++
	return r
}

func (s *slab) give(r ref) {
	*s.at(r) = count{older: s.free}
	s.free = r
}

// push puts a count at the newest end of its limit's list.
func (m *Memory) push(l *limit, at ref) {
	c := m.slab.at(at)
	c.newer, c.older = 0, l.newest
	if l.newest != 0 {
		m.slab.at(l.newest).newer = at
	} else {
		l.oldest = at
	}
	l.newest = at
}

func (m *Memory) unlink(l *limit, at ref) {
	c := m.slab.at(at)
	if c.newer != 0 {
		m.slab.at(c.newer).older = c.older
	} else {
		l.newest = c.older
	}
	if c.older != 0 {
		m.slab.at(c.older).newer = c.newer
	} else {
		l.oldest = c.newer
	}
}

// use moves a count to the newest end.
func (m *Memory) use(at ref) {
	l := m.slab.at(at).limit
	if l.newest == at {
		return
	}
	m.unlink(l, at)
	m.push(l, at)
}
