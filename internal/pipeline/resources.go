package pipeline

import (
	"cmp"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// hostPart is a marshalled virtual host with what had to be left out of it. There are as many as hosts,
// and bundles look at all of theirs, so that it is small and no pointer.
type hostPart struct {
	part   *envoy.Part
	errors *[]envoy.RuleError // nil for most
}

func (h hostPart) Equal(o hostPart) bool {
	return h == o || h.part.Hash == o.part.Hash && h.part.Name == o.part.Name && h.errors == nil && o.errors == nil
}

// ListenerAddress names one of Envoy's listeners: what serves an ir.Listener at one of
// its addresses. Envoy can't change the addresses of a listener that serves without
// closing its sockets, but it can gain and lose listeners.
type ListenerAddress struct {
	Gateway  object.Name
	Listener string // ir.Listener.Name
	Address  string
}

// name is what Envoy calls it.
func (k ListenerAddress) name() string { return k.Listener + "@" + k.Address }

func (k ListenerAddress) String() string { return k.Gateway.String() + "/" + k.name() }

func (k ListenerAddress) compare(o ListenerAddress) int {
	return cmp.Or(k.Gateway.Compare(o.Gateway), cmp.Compare(k.Listener, o.Listener), cmp.Compare(k.Address, o.Address))
}

// declareResources declares what proxies are sent.
func (p *Pipeline) declareResources() {
	p.declareSharded()
	p.declarePatches()
	marshal := func(c *flow.Ctx, k ir.HostKey, h *ir.Host, emit func(ir.HostKey, hostPart)) {
		part, errs := envoy.HostPart(p.dividedHost(c, k, h))
		if part == nil {
			return
		}
		out := hostPart{part: part}
		if len(errs) > 0 {
			out.errors = &errs
		}
		emit(k, out)
	}
	equal := flow.Equal(hostPart.Equal)
	p.hostParts = flow.Map("virtual-hosts", p.Hosts, marshal, equal)
	p.fallbackParts = flow.Map("fallback-virtual-hosts", p.FallbackHosts, marshal, equal)

	hostsByBundle := flow.NewIndex(p.hostParts,
		func(k ir.HostKey, _ hostPart, yield func(bundleKey)) { yield(bundleOf(k)) }, ir.HostKey.Compare)
	hostsByBundle.Also(p.fallbackParts)
	bundles := flow.Group("host-bundles", hostsByBundle,
		func(c *flow.Ctx, k bundleKey, members flow.Members[ir.HostKey, hostPart]) (patchedBundle, bool) {
			parts := make([]*envoy.Part, 0, members.Len())
			for _, h := range members.All() {
				parts = append(parts, h.part)
			}
			return p.patchBundle(c, k, parts), true
		}, flow.Equal(patchedBundle.equal))
	p.patchedBundles = flow.NewIndex(bundles, func(k bundleKey, b patchedBundle, yield func(object.Name)) {
		if b.patched != nil {
			yield(k.Gateway())
		}
	}, bundleKey.compare)
	byPiece := flow.NewIndex(bundles,
		func(k bundleKey, _ patchedBundle, yield func(piece)) { k.pieces(yield) }, bundleKey.compare)
	p.declareOnDemand()
	p.declareServing()
	p.declareForwards()
	p.declarePools()
	p.declareConfigurations()
	// Once for all shards of a table.
	whole := flow.Map("filters-around-tables", p.RouteTables,
		func(c *flow.Ctx, k ir.TableKey, at TableFront, emit func(ir.TableKey, *envoy.Around)) {
			if sharded, both := p.forms(c, k); !sharded || both {
				emit(k, envoy.AroundTables(at.filters, at.verified))
			}
		}, flow.Equal((*envoy.Around).Equal))
	divided := flow.Map("filters-around-shards", p.RouteTables,
		func(c *flow.Ctx, k ir.TableKey, at TableFront, emit func(ir.TableKey, *envoy.Around)) {
			if sharded, both := p.forms(c, k); sharded || both {
				emit(k, envoy.AroundShards(k.Table(), at.filters, at.verified))
			}
		}, flow.Equal((*envoy.Around).Equal))
	p.RouteConfigurations = carry(p, "route-configurations", flow.Map("plain-route-configurations", p.configurations,
		func(c *flow.Ctx, k ResourceKey, v configuration, emit func(ResourceKey, *envoy.Resource)) {
			var all []*envoy.Bundle
			add := func(of piece) {
				members := flow.Select(c, byPiece, of)
				all = slices.Grow(all, members.Len())
				for _, b := range members.All() {
					all = append(all, b.Bundle)
				}
			}
			around := whole
			if v.shard >= 0 {
				around = divided
				add(piece{v.table, everyShard})
			}
			add(v.piece)
			filters, ok := flow.Get(c, around, v.table)
			if !ok {
				return // there is none without what stands in front of it
			}
			// Filters that can't be expressed close the configuration.
			r, _ := envoy.BundledRouteTable(k.Name, filters, all)
			emit(k, r.Sparing(v.spare))
		}))

	p.declareTableAccess()
	p.declareLimitFilters()
	p.declareForwarders()

	p.declarePatchedListeners(flow.Map("plain-listener-resources", p.Ports,
		func(c *flow.Ctx, k PortKey, v *ir.Listener, emit func(ListenerAddress, *envoy.Resource)) {
			listener := p.sharding(c, v)
			for _, l := range []*ir.Listener{listener, translate.QUIC(listener)} {
				if l == nil {
					continue
				}
				for _, address := range l.Addresses {
					key := ListenerAddress{k.Gateway, l.Name, address}
					one := *l
					one.Addresses = []string{address}
					// Parts of a listener that can't be expressed are left out of it, and
					// the error says which; the rest serves.
					if resource, _ := envoy.Listener(key.name(), &one); resource != nil {
						emit(key, resource)
					}
				}
			}
		}))
	// An accepted Gateway keeps its proxies even while no listener of it serves:
	// one bad edit must not cost it the process and every connection.
	p.Fleets = flow.Map("fleets", p.Graph.Fleets,
		func(_ *flow.Ctx, k object.Name, gw *topology.Gateway, emit func(object.Name, struct{})) {
			if gw.Served() {
				emit(k, struct{}{})
			}
		}, flow.Equal(flow.Same[struct{}]))

	p.declareBackends()
	p.declarePatchedGateways()
	p.declareCollectors()
	p.declareSecrets()
}
