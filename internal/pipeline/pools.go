package pipeline

import (
	"net/netip"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// declarePools declares the endpoints of UDP ports. Whatever changes behind such a
// port, its route, the weights, the endpoints of a Service, changes one set of
// endpoints and nothing else.
func (p *Pipeline) declarePools() {
	p.pools = flow.Map("pools", p.Ports,
		func(c *flow.Ctx, k PortKey, v *ir.Listener, emit func(BackendKey, Member)) {
			for _, chain := range v.Chains {
				f := chain.Forward
				if f == nil || f.Pool.IsZero() || len(f.Backends) == 0 {
					continue
				}
				pool, leftOut := p.pool(c, f)
				var m Member
				if leftOut != nil {
					m.odd = &oddities{leftOut: leftOut}
				}
				var err error
				if m.Cluster, err = envoy.PoolCluster(f.Pool); err != nil {
					continue
				}
				if m.Endpoints, err = envoy.LoadAssignment(m.Cluster.Name, pool.Endpoints); err != nil {
					m.Endpoints = envoy.EmptyEndpoints(m.Cluster.Name)
				}
				emit(BackendKey{k.Gateway, f.Pool}, m)
			}
		})
}

// pool gathers the endpoints that a UDP port forwards to, and what of them can't be
// given to a proxy.
func (p *Pipeline) pool(c *flow.Ctx, f *ir.Forward) (*ir.Endpoints, *condition.Omission) {
	var leftOut *condition.Omission
	parts := make([]translate.PoolPart, 0, len(f.Backends))
	for _, w := range f.Backends {
		part := translate.PoolPart{Weight: w.Weight}
		if !w.Backend.IsZero() {
			to := w.Backend.Backend().Object
			part.Endpoints = translate.Endpoints(w.Backend, flow.Select(c, p.Inputs.SlicesByBackend, to).All())
			var odd []string
			part.Endpoints = slices.DeleteFunc(part.Endpoints, func(e ir.Endpoint) bool {
				ip, err := netip.ParseAddr(e.Address)
				if err != nil || ip.Zone() != "" {
					odd = append(odd, e.Address)
					return true
				}
				return false
			})
			if odd != nil && leftOut == nil {
				leftOut = &condition.Omission{Service: to.Name.String(), Addresses: odd}
			}
		}
		parts = append(parts, part)
	}
	return translate.Pool(f.Pool, parts), leftOut
}
