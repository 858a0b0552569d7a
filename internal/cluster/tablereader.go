package cluster

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// tableReader is the part of some work that reads a table: it hands over what there is when
// a term begins, and then what each commit changes.
type tableReader[K comparable, V any] struct {
	table  flow.Table[K, V]
	onSet  func(K, V)
	onGone func(K) // the table has no such entry any more
}

func (r *tableReader[K, V]) begin(e *flow.Engine) {
	e.View(func(ctx *flow.Ctx) {
		for k, v := range flow.All(ctx, r.table) {
			r.onSet(k, v)
		}
	})
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

// gatewayReader is a tableReader of what is made for Gateways. What is there for one that may depend on
// something that can't be computed stays as it is until that can be: it may guard the Gateway too, as do the
// addresses from which its Service lets clients in.
type gatewayReader[V any] struct {
	tableReader[object.Name, V]
	unsettled func() func(gateway object.Name) bool // see pipeline.Unsettled
	waits     map[object.Name]*waiting
}

// waiting is what there is to do for a Gateway, now or as long as that must wait; nil for nothing more.
type waiting struct{ now, meanwhile func() }

// newGatewayReader returns a reader that tells hold once of what waits.
func newGatewayReader[V any](unsettled func() func(object.Name) bool, of tableReader[object.Name, V], hold func(V)) gatewayReader[V] {
	waits := map[object.Name]*waiting{}
	return gatewayReader[V]{tableReader[object.Name, V]{
		of.table,
		func(gateway object.Name, v V) {
			waits[gateway] = &waiting{func() { of.onSet(gateway, v) }, func() { hold(v) }}
		},
		func(gateway object.Name) { waits[gateway] = &waiting{now: func() { of.onGone(gateway) }} },
	}, unsettled, waits}
}

func (r *gatewayReader[V]) begin(e *flow.Engine) {
	r.tableReader.begin(e)
	r.handOver()
}

func (r *gatewayReader[V]) committed(c *flow.Commit) {
	r.tableReader.committed(c)
	r.handOver()
}

func (r *gatewayReader[V]) handOver() {
	if len(r.waits) == 0 {
		return
	}
	unsettled := r.unsettled()
	for gateway, w := range r.waits {
		if unsettled == nil || !unsettled(gateway) {
			delete(r.waits, gateway)
			w.now()
		} else if w.meanwhile != nil {
			w.meanwhile()
			w.meanwhile = nil
		}
	}
}
