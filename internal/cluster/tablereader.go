package cluster

import "github.com/gatehouse-dev/gatehouse/internal/flow"

// tableReader is the part of some work that reads a table: it hands over what there is when
// a term begins, and then what each commit changes.
type tableReader[K comparable, V any] struct {
	table  flow.Table[K, V]
	onSet  func(K, V)
	onGone func(K) // the table has no such entry any more
}

func (r *tableReader[K, V]) begin(ctx *flow.Ctx) {
	for k, v := range flow.All(ctx, r.table) {
		r.onSet(k, v)
	}
}

func (r *tableReader[K, V]) committed(c *flow.Commit) {
	for _, ch := range flow.Changes(c, r.table) {
		if ch.Has {
			r.onSet(ch.Key, ch.New)
		} else {
			r.onGone(ch.Key)
		}
	}
}
