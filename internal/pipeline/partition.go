package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// This file decides in which route configurations the hosts of a route table live: in one,
// or, for a table of many routes, in one for each of its shards, see envoy.ShardOf. It is
// the only place that does: configurations are put together by it, and a proxy's refusal of
// a host leads back by it, so that nothing else may assume that all hosts of a table share a
// configuration.

// bundleKey names a bundle of a route table's hosts. No bundle has hosts of two shards, or
// some that live in one shard and some that live in all of them, so that a bundle is where it is
// whether or not its table is sharded.
type bundleKey struct {
	table      ir.TableKey
	everywhere bool // hosts with wildcards
	number     uint16
}

// Gateway returns the Gateway that the table is of.
func (k bundleKey) Gateway() object.Name { return k.table.Gateway() }

func (k bundleKey) String() string {
	if k.everywhere {
		return fmt.Sprintf("%s#*%d", k.table, k.number)
	}
	return fmt.Sprintf("%s#%d", k.table, k.number)
}

func (k bundleKey) compare(o bundleKey) int {
	if k.everywhere != o.everywhere {
		if k.everywhere {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(k.number, o.number), k.table.Compare(o.table))
}

// bundlesPerShard is into how many bundles the hosts of a shard fall. An edit looks at all hosts of one
// bundle and at all bundles of one configuration, which is to be about as much in a large table.
const bundlesPerShard = 8

// wildcardBundles is into how many the hosts with wildcards fall. Each shard has all of them.
const wildcardBundles = 256

// bundleOf returns the bundle that a host is in.
func bundleOf(h ir.HostKey) bundleKey {
	hash := xxhash.Sum64String(h.Domain)
	if strings.HasPrefix(h.Domain, "*") {
		return bundleKey{h.TableKey, true, uint16(hash % wildcardBundles)}
	}
	return bundleKey{h.TableKey, false, uint16(envoy.ShardOf(h.Domain))*bundlesPerShard + uint16(hash%bundlesPerShard)}
}

// A piece is a set of a table's bundles.
type piece struct {
	table ir.TableKey
	shard int16 // or one of the following
}

const (
	wholeTable = -1 // all bundles
	everyShard = -2 // those that are in all shards
)

// Gateway returns the Gateway that the table is of.
func (k piece) Gateway() object.Name { return k.table.Gateway() }

func (k piece) String() string { return fmt.Sprintf("%s/%d", k.table, k.shard) }

// pieces yields those that a bundle belongs to.
func (k bundleKey) pieces(yield func(piece)) {
	yield(piece{k.table, wholeTable})
	if k.everywhere {
		yield(piece{k.table, everyShard})
	} else {
		yield(piece{k.table, int16(k.number / bundlesPerShard)})
	}
}

// configuration is a route configuration that a table needs.
type configuration struct {
	piece
	spare bool // only connections that drain use it
}

// name is what Envoy calls it. No two tables of a Gateway share one.
func (k piece) name() ResourceKey {
	if k.shard == wholeTable {
		return ResourceKey{k.table.Gateway(), k.table.Table()}
	}
	return ResourceKey{k.table.Gateway(), envoy.ShardName(k.table.Table(), uint8(k.shard))} //nolint:gosec // it is one
}

// TableOf returns the route table that a route configuration is of.
func (p *Pipeline) TableOf(c *flow.Ctx, k ResourceKey) ir.TableKey {
	v, _ := flow.Get(c, p.configurations, k)
	return v.table
}

// has reports whether a host lives in a configuration.
func (k piece) has(h ir.HostKey) bool {
	in := false
	bundleOf(h).pieces(func(of piece) { in = in || of == k || of.shard == everyShard && of.table == k.table })
	return in
}

// declareConfigurations declares which route configurations there are.
func (p *Pipeline) declareConfigurations() {
	p.configurations = flow.Map("needed-route-configurations", p.RouteTables,
		func(c *flow.Ctx, k ir.TableKey, _ TableFront, emit func(ResourceKey, configuration)) {
			sharded, both := p.forms(c, k)
			if whole := (piece{k, wholeTable}); !sharded || both {
				emit(whole.name(), configuration{whole, sharded})
			}
			if !sharded && !both {
				return
			}
			for shard := range int16(envoy.Shards) {
				one := piece{k, shard}
				emit(one.name(), configuration{one, !sharded})
			}
		}, flow.Equal(flow.Same[configuration]))
	p.Scopes = flow.Map("scopes", p.configurations,
		func(c *flow.Ctx, k ResourceKey, v configuration, emit func(ResourceKey, *envoy.Resource)) {
			if v.shard >= 0 {
				emit(k, envoy.Scope(v.table.Table(), uint8(v.shard)).Sparing(v.spare)) //nolint:gosec // it is one
			} else if h, ok := flow.Get(c, p.onDemandHosts, v.table); ok && !v.spare {
				emit(k, envoy.HostScope(k.Name, h.listener, h.hostname).Sparing(h.spare))
			}
		}, flow.Equal(func(a, b *envoy.Resource) bool { return a.Equal(b) }))
}

// sharding returns a listener that knows which of its tables are sharded.
func (p *Pipeline) sharding(c *flow.Ctx, l *ir.Listener) *ir.Listener {
	out := l
	for i, chain := range l.Chains {
		if chain.Table == "" {
			continue
		}
		if !p.isSharded(c, l, &chain) {
			continue
		}
		if out == l {
			copied := *l
			out, copied.Chains = &copied, slices.Clone(l.Chains)
		}
		out.Chains[i].Sharded = true
	}
	return out
}

// isSharded reports whether the table of a listener's chain is.
func (p *Pipeline) isSharded(c *flow.Ctx, l *ir.Listener, chain *ir.Chain) bool {
	now, _ := flow.Get(c, p.Sharded, ir.TableOf(l.Gateway, chain.Table))
	return now == Divided
}
