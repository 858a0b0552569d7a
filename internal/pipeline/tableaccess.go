package pipeline

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// TableAccess is who may pass by a divided table, which stands beside its shards.
type TableAccess struct {
	Resource *envoy.Resource
	policies []object.Key // that say so together
}

func (a TableAccess) equal(b TableAccess) bool {
	return a.Resource.Equal(b.Resource) && a.Resource.CarriesAlike(b.Resource) && slices.Equal(a.policies, b.policies)
}

// declareTableAccess declares what proxies are sent of who may pass by tables that are divided, or that
// a proxy may still have divided. It carries the marks of the policies in it and of no others:
// while a proxy refuses it, all others are in force.
func (p *Pipeline) declareTableAccess() {
	p.TableAccess = flow.Map("table-access", p.RouteTables,
		func(c *flow.Ctx, k ir.TableKey, at TableFront, emit func(ResourceKey, TableAccess)) {
			access := accessAround(at.filters)
			if access == nil || access.IsOpen() {
				return
			}
			sharded, both := p.forms(c, k)
			if !sharded && !both {
				return
			}
			policies, _ := flow.Get(c, p.portPolicies, at.at)
			// Without it nobody passes.
			if r, err := envoy.TableAccess(k.Table(), access); err == nil {
				r = r.Sparing(!sharded).Carrying(p.marksOf(c, policies))
				emit(ResourceKey{k.Gateway(), r.Name}, TableAccess{r, policies})
			}
		}, flow.Equal(TableAccess.equal))
}

// marksOf returns the marks of some policies.
func (p *Pipeline) marksOf(c *flow.Ctx, policies []object.Key) *[]uint64 {
	marks := make([]uint64, 0, len(policies))
	for _, k := range policies {
		if m, ok := flow.Get(c, p.marks[k.Kind], k); ok {
			marks = append(marks, m)
		}
	}
	slices.Sort(marks)
	return &marks
}

// dividedHost returns a host that knows whether its table is divided, if the table says who may pass.
func (p *Pipeline) dividedHost(c *flow.Ctx, k ir.HostKey, h *ir.Host) *ir.Host {
	if accessAround(h.Around) == nil {
		return h
	}
	if sharded, both := p.forms(c, k.TableKey); !sharded && !both {
		return h
	}
	out := *h
	out.Divided = k.Table()
	return &out
}
