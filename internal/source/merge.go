package source

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Merge combines several sources. Of two that define the same object the first one
// wins, and the other's object is kept, to be used when the winner's is deleted. It is
// for one goroutine.
type Merge struct {
	// Shadowed is called when an object begins (true) or ends not to be used because
	// another source defines it too. by is the source that wins, from the one whose
	// object is not used.
	Shadowed func(k object.Key, by, from int, begins bool)

	owners map[object.Key][]Object // by source; nil where a source doesn't define the object
	n      int
}

// NewMerge combines n sources.
func NewMerge(n int) *Merge {
	return &Merge{owners: map[object.Key][]Object{}, n: n}
}

// Take turns a batch of one source into what it changes for all. Objects need
// their TypeMeta.
func (m *Merge) Take(from int, b Batch) Batch {
	out := Batch{Problems: b.Problems, Places: b.Places, Foreign: b.Foreign, Unread: b.Unread}
	for _, k := range b.Deleted {
		if m.put(k, from, nil) {
			if now := m.winner(k); now >= 0 {
				out.Set = append(out.Set, m.owners[k][now])
			} else {
				delete(m.owners, k)
				out.Deleted = append(out.Deleted, k)
			}
		}
	}
	for _, o := range b.Set {
		if k := KeyOf(o); m.put(k, from, o) {
			out.Set = append(out.Set, o)
		}
	}
	return out
}

// Owner returns the source whose object is used; -1 if there is none.
func (m *Merge) Owner(k object.Key) int { return m.winner(k) }

// put stores an object, nil for none, and reports whether that changes what is used.
func (m *Merge) put(k object.Key, from int, o Object) (counts bool) {
	list := m.owners[k]
	if list == nil {
		if o == nil {
			return false
		}
		list = make([]Object, m.n)
		m.owners[k] = list
	}
	before := m.winner(k)
	was := slices.Clone(list)
	list[from] = o
	after := m.winner(k)
	if m.Shadowed != nil {
		for i := range list {
			hidden := was[i] != nil && i != before
			if hides := list[i] != nil && i != after; hides != hidden {
				m.Shadowed(k, after, i, hides)
			}
		}
	}
	return from == before || from == after
}

func (m *Merge) winner(k object.Key) int {
	return slices.IndexFunc(m.owners[k], func(o Object) bool { return o != nil })
}
