package pipeline

import (
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// defaultShardAbove is the number of routes from which on it pays to divide a table: Envoy then takes as
// long to take in an edit as the rest of the way does.
const defaultShardAbove = 512

// census counts the routes of a table, by where its hosts live.
type census struct {
	shards     [envoy.Shards]int32
	everywhere int32
}

func censusOf(k ir.HostKey, h *ir.Host) (c census) {
	if strings.HasPrefix(k.Domain, "*") {
		c.everywhere = int32(len(h.Rules)) //nolint:gosec // bounded by what is sent to a proxy
	} else {
		c.shards[envoy.ShardOf(k.Domain)] = int32(len(h.Rules)) //nolint:gosec // the same
	}
	return c
}

// plus returns the sum, or the difference by a negative sign.
func (c census) plus(o census, sign int32) census {
	c.everywhere += sign * o.everywhere
	for i := range c.shards {
		c.shards[i] += sign * o.shards[i]
	}
	return c
}

// divides reports whether a table is to be sharded: where it has enough routes, not all of one host, an
// edit of most of which costs a fraction of what it costs otherwise, and those in all shards don't cost much
// memory. A table that was sharded stays so within a factor of two: its listener changes each
// time, and drains.
func (c *census) divides(above int, was bool) bool {
	exact, largest, slack := int32(0), int32(0), int32(1)
	for _, n := range c.shards {
		exact += n
		largest = max(largest, n)
	}
	if was {
		slack = 2
	}
	return above > 0 && int(slack*(exact+c.everywhere)) > above && largest < exact+c.everywhere &&
		largest <= slack*(16+exact/4) && c.everywhere <= slack*(8+exact/64)
}

// Sharding says of a table that has or had the size for it whether it is sharded.
type Sharding uint8

const (
	_         Sharding = iota
	Undivided          // it is not, but would have stayed it, or a proxy has it so
	Divided
)

// drained is how long after a change of a listener nobody uses its former configuration any more:
// what an Envoy gives its connections to drain, and two minutes, since the clock has minutes.
const drained = 12 * time.Minute

// A table that was divided, or made whole, is in the form that it had as well for some time: what
// still drains must not be served by routes of then. At first nobody knows in which form proxies
// have what could have either.
type shards struct {
	changed []flow.Change[ir.TableKey, Sharding] // since the last transaction with batches
	now     map[ir.TableKey]Sharding
	until   map[ir.TableKey]time.Time // for which both forms are kept

	// were are the tables that were sharded in the last transaction with batches, and settled are those
	// that proxies have in one form only, or, with zero, still in both.
	were    *flow.Input[ir.TableKey, struct{}]
	settled *flow.Input[ir.TableKey, Sharding]

	// claimed are those of which a proxy had the other form when it connected, for as long as both
	// are kept, with what xds.State says of it; claims are those of them since the last transaction with batches,
	// and took, by Gateway, those since the last Updates.
	claimed *flow.Input[ir.TableKey, bool]
	claims  []ir.TableKey
	took    map[object.Name]map[string]bool
}

func newShards(e *flow.Engine) *shards {
	return &shards{
		now: map[ir.TableKey]Sharding{}, until: map[ir.TableKey]time.Time{},
		were:    flow.NewInput[ir.TableKey, struct{}](e, "were-sharded", flow.Equal(flow.Same[struct{}])),
		settled: flow.NewInput[ir.TableKey, Sharding](e, "settled-tables", flow.Equal(flow.Same[Sharding])),
		claimed: flow.NewInput[ir.TableKey, bool](e, "claimed-tables", flow.Equal(flow.Same[bool])),
		took:    map[object.Name]map[string]bool{},
	}
}

// declareSharded declares which tables are sharded.
func (p *Pipeline) declareSharded() {
	routes := flow.Fold("routes-of-tables", p.Hosts,
		func(k ir.HostKey, _ *ir.Host, yield func(ir.TableKey)) { yield(k.TableKey) },
		func(c census, k ir.HostKey, h *ir.Host) census { return c.plus(censusOf(k, h), +1) },
		func(c census, k ir.HostKey, h *ir.Host) census { return c.plus(censusOf(k, h), -1) },
		flow.Equal(flow.Same[census]))
	p.Sharded = flow.Map("sharded-tables", routes,
		func(c *flow.Ctx, k ir.TableKey, n census, emit func(ir.TableKey, Sharding)) {
			above := p.shardAbove(c, k.Gateway())
			if front, _ := flow.Get(c, p.fronts, k); front.prerouting {
				above = 0 // routes are chosen twice, and both times in one version of the table
			}
			_, was := flow.Get(c, p.shards.were, k)
			_, claimed := flow.Get(c, p.shards.claimed, k)
			v, _ := flow.Get(c, p.tableChains, k)
			switch {
			case n.divides(above, was):
				emit(k, Divided)
			case n.divides(above, true), claimed && !translate.IsExact(&v.chain) && n.everywhere <= maxClaimed:
				emit(k, Undivided)
			}
		}, flow.Equal(flow.Same[Sharding]))
}

// maxClaimed is how many routes for hosts with wildcards a table may have for shards of it to be made
// because a proxy says that it has some. Each shard has all of them: the word of a proxy must not cost
// the memory of all.
const maxClaimed = 1024

// takeForms takes in of which tables a proxy had the other form when it connected, see xds.State: an
// earlier process, or another replica of the controller, has sent it. Both are kept while connections
// drain, as after a change. What a proxy had in shards alone counts as divided before, and a port of whose hosts it
// found tables by server names, with certificates by these, as on demand before.
func (p *Pipeline) takeForms(tx *flow.Tx, gateway object.Name, tables map[string]bool) {
	s := p.shards
	for table, divided := range tables {
		k := ir.TableOf(gateway, table)
		s.claims = append(s.claims, k)
		s.claimed.Set(tx, k, divided)
		if divided {
			s.were.Set(tx, k, struct{}{})
		}
		if _, large := s.now[k]; large {
			s.settled.Set(tx, k, 0)
		}
		s.until[k] = p.now.Add(drained)
		if s.took[gateway] == nil {
			s.took[gateway] = map[string]bool{}
		}
		s.took[gateway][table] = s.took[gateway][table] || divided
	}
}

// forms says whether a table is sharded, and whether the other form is needed too.
func (p *Pipeline) forms(c *flow.Ctx, k ir.TableKey) (sharded, both bool) {
	now, large := flow.Get(c, p.Sharded, k)
	settled, known := flow.Get(c, p.shards.settled, k)
	if large {
		both = settled != now
	} else {
		both = known && settled != Undivided
	}
	return now == Divided, both && !p.Options.NoProxies
}

// noteOwing notes whether a proxy of a Gateway has refused a listener, or is behind: it may go on for any
// time with one that has a table, or its certificates, in the former form.
func (p *Pipeline) noteOwing(gateway object.Name, said *answers) {
	if len(said.refused) > 0 || said.behind != "" {
		p.onOlderListener[gateway] = true
	} else {
		delete(p.onOlderListener, gateway)
	}
}

// shardAbove is above how many routes a Gateway's tables are sharded; 0 for never.
func (p *Pipeline) shardAbove(c *flow.Ctx, gateway object.Name) int {
	gw, ok := flow.Get(c, p.Graph.Fleets, gateway)
	if !ok || gw.Parameters.RouteTables == nil || gw.Parameters.RouteTables.ShardAbove == nil {
		return defaultShardAbove
	}
	return int(*gw.Parameters.RouteTables.ShardAbove)
}

// keepShards remembers in which form tables are. It lags one transaction behind, as keep does: what
// changes in one is asked for its former form in the next, at the earliest.
func (p *Pipeline) keepShards(tx *flow.Tx) {
	s := p.shards
	for _, ch := range s.changed {
		if ch.Has && ch.New == Divided {
			s.were.Set(tx, ch.Key, struct{}{})
		} else {
			s.were.Delete(tx, ch.Key)
		}
		if ch.Has {
			s.now[ch.Key] = ch.New
		} else {
			delete(s.now, ch.Key)
		}
		if _, waits := s.until[ch.Key]; ch.Had && ch.Old == Undivided && !ch.Has {
			if !waits {
				s.settled.Delete(tx, ch.Key)
			}
			continue // it was whole, and is
		}
		s.settled.Set(tx, ch.Key, 0)
		s.until[ch.Key] = p.now.Add(drained)
	}
	s.changed = nil
	for _, k := range s.claims {
		if s.now[k] != Divided {
			s.were.Delete(tx, k) // it has been made whole, and is from now on by what it was here
		}
	}
	s.claims = nil
	for k, until := range s.until {
		if p.onOlderListener[k.Gateway()] {
			s.until[k] = p.now.Add(drained)
			continue
		}
		if p.now.Before(until) {
			continue
		}
		delete(s.until, k)
		s.claimed.Delete(tx, k)
		if now, large := s.now[k]; large {
			s.settled.Set(tx, k, now)
		} else {
			s.settled.Delete(tx, k)
		}
	}
}
