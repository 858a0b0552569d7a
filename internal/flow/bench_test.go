package flow

import (
	"cmp"
	"fmt"
	"testing"
)

// chain is the way of a route through the real pipeline: an input, tables entry by
// entry that read shared and own values, a group of a few, and an aggregate.
type chain struct {
	engine    *Engine
	gateways  *Input[name, int]
	routes    *Input[name, int]
	services  *Input[name, int]
	endpoints *Input[name, int]
	keys      []name
}

func newChain(entries int) *chain {
	e := New()
	ints := Equal(Same[int])
	c := &chain{
		engine:    e,
		gateways:  NewInput[name](e, "gateways", ints),
		routes:    NewInput[name](e, "routes", ints),
		services:  NewInput[name](e, "services", ints),
		endpoints: NewInput[name](e, "endpoints", ints),
	}
	gateway := name{"infra", "gateway"}
	bySlice := NewIndex(c.endpoints, func(k name, _ int, yield func(name)) { yield(k) }, compareNames)
	attached := Map("attached", c.routes, func(c2 *Ctx, k name, v int, emit func(name, int)) {
		if g, ok := Get(c2, c.gateways, gateway); ok {
			emit(k, v+g)
		}
	}, ints)
	resolved := Map("resolved", attached, func(c2 *Ctx, k name, v int, emit func(name, int)) {
		s, _ := Get(c2, c.services, k)
		emit(k, v+s)
	}, ints)
	backends := Map("backends", attached, func(c2 *Ctx, k name, _ int, emit func(name, int)) {
		sum := 0
		for _, v := range Select(c2, bySlice, k).All() {
			sum += v
		}
		emit(k, sum)
	}, ints)
	byHost := NewIndex(resolved, func(k name, _ int, yield func(string)) { yield(k.name) }, compareNames)
	hosts := Group("hosts", byHost, func(_ *Ctx, _ string, m Members[name, int]) (int, bool) {
		sum := 0
		for _, v := range m.All() {
			sum += v
		}
		return sum, true
	}, ints)
	Count("count", attached, func(name, int, func(name)) {})
	Fold("sum", attached, func(_ name, _ int, yield func(name)) { yield(gateway) },
		func(a int, _ name, v int) int { return a + v },
		func(a int, _ name, v int) int { return a - v }, ints)
	Watch(hosts)
	Watch(backends)
	c.keys = make([]name, entries)
	for i := range c.keys {
		c.keys[i] = name{"apps", fmt.Sprint("route-", i)}
	}
	return c
}

func (c *chain) load() {
	c.engine.Update(func(tx *Tx) {
		c.gateways.Set(tx, name{"infra", "gateway"}, 1)
		for i, k := range c.keys {
			c.routes.Set(tx, k, i)
			c.services.Set(tx, k, i)
			c.endpoints.Set(tx, k, i)
		}
	})
}

func compareNames(a, b name) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// BenchmarkEdit protects the first promise of the package: what a change costs
// does not depend on what exists.
func BenchmarkEdit(b *testing.B) {
	for _, entries := range []int{1000, 20_000} {
		c := newChain(entries)
		c.load()
		b.Run(fmt.Sprintf("route/%d", entries), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				c.engine.Update(func(tx *Tx) { c.routes.Set(tx, c.keys[i%entries], -i) })
			}
		})
		b.Run(fmt.Sprintf("endpoint/%d", entries), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				c.engine.Update(func(tx *Tx) { c.endpoints.Set(tx, c.keys[i%entries], -i) })
			}
		})
		b.Run(fmt.Sprintf("delete-and-add/%d", entries), func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				k := c.keys[i%entries]
				c.engine.Update(func(tx *Tx) { c.routes.Delete(tx, k) })
				c.engine.Update(func(tx *Tx) { c.routes.Set(tx, k, i) })
			}
		})
	}
}

// BenchmarkLoad is the cold start, and a change that everything depends on.
func BenchmarkLoad(b *testing.B) {
	const entries = 20_000
	b.Run("cold", func(b *testing.B) {
		for range b.N {
			newChain(entries).load()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
	})
	b.Run("gateway", func(b *testing.B) {
		c := newChain(entries)
		c.load()
		for i := range b.N {
			c.engine.Update(func(tx *Tx) { c.gateways.Set(tx, name{"infra", "gateway"}, -i) })
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
	})
}
