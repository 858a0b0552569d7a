package pipeline

import (
	"cmp"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// hostPart is a marshalled virtual host with what had to be left out of it.
type hostPart struct {
	part   *envoy.Part
	errors []envoy.RuleError
}

func (h *hostPart) Equal(o *hostPart) bool {
	return h == o || h.part.Hash == o.part.Hash && h.part.Name == o.part.Name && len(h.errors) == 0 && len(o.errors) == 0
}

// perAddress splits listeners into one for each of their addresses. Envoy can't
// change the addresses of a listener that serves without closing its sockets, but
// it can gain and lose listeners.
func perAddress(listeners ...*ir.Listener) []*ir.Listener {
	var out []*ir.Listener
	for _, l := range listeners {
		if l == nil {
			continue
		}
		for _, address := range l.Addresses {
			one := *l
			one.Name += addressMark + address
			one.Addresses = []string{address}
			out = append(out, &one)
		}
	}
	return out
}

// addressMark stands between a listener's name and the address that it binds.
const addressMark = "@"

// declareResources declares what proxies are sent.
func (p *Pipeline) declareResources() {
	marshal := func(_ *flow.Ctx, k ir.HostKey, h *ir.Host, emit func(ir.HostKey, *hostPart)) {
		part, errs := envoy.HostPart(h)
		if part != nil {
			emit(k, &hostPart{part, errs})
		}
	}
	p.hostParts = flow.Map("virtual-hosts", p.Hosts, marshal)
	p.fallbackParts = flow.Map("fallback-virtual-hosts", p.FallbackHosts, marshal)

	byBundle := flow.NewIndex(p.hostParts,
		func(k ir.HostKey, _ *hostPart, yield func(bundleKey)) { yield(bundleOf(k)) }, ir.HostKey.Compare)
	byBundle.Also(p.fallbackParts)
	bundles := flow.Group("host-bundles", byBundle,
		func(_ *flow.Ctx, _ bundleKey, members flow.Members[ir.HostKey, *hostPart]) (*envoy.Bundle, bool) {
			parts := make([]*envoy.Part, 0, members.Len())
			for _, h := range members.All() {
				parts = append(parts, h.part)
			}
			return envoy.NewBundle(parts), true
		})
	byTable := flow.NewIndex(bundles,
		func(k bundleKey, _ *envoy.Bundle, yield func(ir.TableKey)) { yield(k.TableKey) },
		func(a, b bundleKey) int {
			return cmp.Or(a.TableKey.Compare(b.TableKey), cmp.Compare(a.number, b.number))
		})
	p.RouteConfigurations = flow.Map("route-configurations", p.RouteTables,
		func(c *flow.Ctx, k ir.TableKey, at TableFront, emit func(ir.TableKey, *envoy.Resource)) {
			members := flow.Select(c, byTable, k)
			all := make([]*envoy.Bundle, 0, members.Len())
			for _, b := range members.All() {
				all = append(all, b)
			}
			// Filters that can't be expressed close the table.
			table, _ := envoy.BundledRouteTable(k.Table, at.filters, all)
			emit(k, table)
		})

	p.Listeners = flow.Map("listener-resources", p.Ports,
		func(_ *flow.Ctx, k PortKey, v *Port, emit func(ResourceKey, *envoy.Resource)) {
			for _, l := range perAddress(v.Listener, translate.QUIC(v.Listener)) {
				// Parts of a listener that can't be expressed are left out of it, and
				// the error says which; the rest serves.
				if resource, _ := envoy.Listener(l); resource != nil {
					emit(ResourceKey{k.Gateway, l.Name}, resource)
				}
			}
		})
	// An accepted Gateway keeps its proxies even while no listener of it serves:
	// one bad edit must not cost it the process and every connection.
	p.Fleets = flow.Map("fleets", p.Graph.Gateways,
		func(_ *flow.Ctx, k object.Name, gw *topology.Gateway, emit func(object.Name, struct{})) {
			if gw.Served() {
				emit(k, struct{}{})
			}
		}, flow.Equal(flow.Same[struct{}]))

	p.declareBackends()
	p.declareCollectors()
	p.declareSecrets()
}

// bundleKey names a bundle of a route configuration's hosts.
type bundleKey struct {
	ir.TableKey // the route configuration
	number      uint8
}

func (k bundleKey) String() string { return fmt.Sprintf("%s#%d", k.TableKey, k.number) }

// bundlesPerTable is into how many bundles the hosts of a route configuration
// fall: about the square root of the number of hosts in the largest tables, so
// that neither the bundles of a table nor the hosts of a bundle are many.
const bundlesPerTable = 128

// bundleOf decides which route configuration a host lives in, and in which of
// its bundles. It is the only place that does: nothing else may assume that all
// hosts of a table share one configuration.
func bundleOf(k ir.HostKey) bundleKey {
	return bundleKey{k.TableKey, uint8(xxhash.Sum64String(k.Domain) % bundlesPerTable)}
}
