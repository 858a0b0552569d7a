package pipeline

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
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
	p.TableAccess = flow.Map("table-access", p.Ports,
		func(c *flow.Ctx, k PortKey, v *Port, emit func(ResourceKey, TableAccess)) {
			access := accessAround(v.Listener.Filters)
			if access == nil || access.IsOpen() {
				return
			}
			policies, _ := flow.Get(c, p.portPolicies, k)
			for _, chain := range v.Listener.Chains {
				if chain.Table == "" {
					continue
				}
				table := ir.TableOf(v.Listener.Gateway, chain.Table)
				sharded, both := p.forms(c, table)
				if !sharded && !both {
					continue
				}
				// Without it nobody passes.
				if r, err := envoy.TableAccess(chain.Table, access); err == nil {
					r = r.Sparing(!sharded).Carrying(p.marksOf(c, policies))
					emit(ResourceKey{k.Gateway, r.Name}, TableAccess{r, policies})
				}
			}
		}, flow.Equal(TableAccess.equal))
}

// declarePortPolicies declares which policies have to do with who may pass by a port.
func (p *Pipeline) declarePortPolicies(byPort *flow.Index[PortKey, topology.ListenerKey, *topology.Listener]) {
	p.portPolicies = flow.Group("port-policies", byPort,
		func(c *flow.Ctx, _ PortKey, members flow.Members[topology.ListenerKey, *topology.Listener]) ([]object.Key, bool) {
			var out []object.Key
			for at := range members.All() {
				above := p.Graph.Auth.OnListener(c, at)
				if above == nil {
					continue
				}
				for _, o := range above.Effective.Outcomes() {
					out = append(out, object.Key{Kind: kind.AuthPolicy, Name: o.Policy})
				}
			}
			slices.SortFunc(out, object.Key.Compare)
			return slices.Compact(out), len(out) > 0
		}, flow.Equal(func(a, b []object.Key) bool { return slices.Equal(a, b) }))
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
