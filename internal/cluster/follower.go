package cluster

import "github.com/gatehouse-dev/gatehouse/internal/flow"

// follower is the part of some work that reads a table: it hands over what there is when
// a term begins, and then what each commit changes.
type follower[K comparable, V any] struct {
	table flow.Table[K, V]
	set   func(K, V)
	gone  func(K) // the table has no such entry any more
}

func (f *follower[K, V]) begin(ctx *flow.Ctx) {
	for k, v := range flow.All(ctx, f.table) {
		f.set(k, v)
	}
}

func (f *follower[K, V]) committed(c *flow.Commit) {
	for _, ch := range flow.Changes(c, f.table) {
		if ch.Has {
			f.set(ch.Key, ch.New)
		} else {
			f.gone(ch.Key)
		}
	}
}
