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

// gatewayReader is a tableReader of what is made for Gateways. What is there for one that may depend on
// something that can't be computed stays as it is until that can be: it may guard the Gateway too, as do the
// addresses from which its Service lets clients in.
type gatewayReader[V any] struct {
	tableReader[object.Name, V]
	withheld func() func(gateway object.Name) bool // see pipeline.Withheld
	waits    map[object.Name]func()                // hand over
}

func newGatewayReader[V any](withheld func() func(object.Name) bool, of tableReader[object.Name, V]) gatewayReader[V] {
	waits := map[object.Name]func(){}
	return gatewayReader[V]{tableReader[object.Name, V]{
		of.table,
		func(gateway object.Name, v V) { waits[gateway] = func() { of.onSet(gateway, v) } },
		func(gateway object.Name) { waits[gateway] = func() { of.onGone(gateway) } },
	}, withheld, waits}
}

func (r *gatewayReader[V]) begin(ctx *flow.Ctx) {
	r.tableReader.begin(ctx)
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
	withheld := r.withheld()
	for gateway, hand := range r.waits {
		if withheld == nil || !withheld(gateway) {
			delete(r.waits, gateway)
			hand()
		}
	}
}
