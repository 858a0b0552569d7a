package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
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

// Member is a backend's resources, as one Gateway refers to them.
type Member struct {
	Cluster, Endpoints *envoy.Resource
	leftOut            *condition.Omission // nil where nothing is
}

// Equal reports whether two have the same resources.
func (m Member) Equal(o Member) bool {
	return m.Cluster.Equal(o.Cluster) && m.Endpoints.Equal(o.Endpoints) && m.leftOut.Equal(o.leftOut)
}

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
		func(c *flow.Ctx, k ir.TableKey, _ TableFront, emit func(ir.TableKey, *envoy.Resource)) {
			members := flow.Select(c, byTable, k)
			all := make([]*envoy.Bundle, 0, members.Len())
			for _, b := range members.All() {
				all = append(all, b)
			}
			emit(k, envoy.BundledRouteTable(k.Table, all))
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

// declareBackends declares clusters and endpoints: marshalled once for each
// backend in use, then referred to by each Gateway that uses it.
func (p *Pipeline) declareBackends() {
	used := flow.CountAll("used-backends",
		func(_ ir.HostKey, h *ir.Host, yield func(string)) { backendsOf(h, yield) }, p.Hosts, p.forwards)
	p.Backends = flow.Map("backends", used,
		func(c *flow.Ctx, name string, _ int, emit func(string, *ir.Backend)) {
			if b := p.backend(c, name); b != nil {
				b.Name = name // one copy of the text for all
				emit(name, b)
			}
		})
	resources := flow.Map("backend-resources", p.Backends,
		func(c *flow.Ctx, name string, b *ir.Backend, emit func(string, Member)) {
			var m Member
			var err error
			if m.Cluster, err = envoy.Cluster(b); err != nil {
				return
			}
			if b.DNS == "" {
				slices := flow.Select(c, p.Inputs.SlicesByService, b.Service)
				m.Endpoints, err = envoy.LoadAssignment(translate.Endpoints(b, slices.All()))
				if m.Endpoints == nil {
					m.Endpoints = envoy.EmptyEndpoints(name)
				}
				// An endpoint that can't be used is left out; the others serve.
				if odd := (*envoy.AddressError)(nil); errors.As(err, &odd) {
					m.leftOut = &condition.Omission{Service: b.Service.String(), Addresses: odd.Addresses}
				}
			}
			emit(name, m)
		})
	p.hostsByBackend = flow.NewIndex(p.Hosts,
		func(k ir.HostKey, h *ir.Host, yield func(ResourceKey)) {
			backendsOf(h, func(name string) { yield(ResourceKey{k.Gateway, name}) })
		}, ir.HostKey.Compare)
	p.hostsByBackend.Also(p.forwards)
	p.Members = flow.Group("gateway-backends", p.hostsByBackend,
		func(c *flow.Ctx, k ResourceKey, _ flow.Members[ir.HostKey, *ir.Host]) (Member, bool) {
			m, ok := flow.Get(c, resources, k.Name)
			if !ok {
				return flow.Get(c, p.pools, k)
			}
			return p.ownMember(c, k, m), true
		})
}

// backend returns the backend of a name, nil where there is none any more.
func (p *Pipeline) backend(c *flow.Ctx, name string) *ir.Backend {
	sp := p.portOf(c, name)
	if sp == nil {
		return nil
	}
	if !translate.Encrypted(name) {
		sp.TLS = nil // a connection that is passed through has TLS of its own
	}
	if b := translate.Backend(sp); b.Name == name {
		return b
	}
	return nil
}

// portOf returns what the name of a backend stands for; nil where nothing does.
func (p *Pipeline) portOf(c *flow.Ctx, name string) *topology.ServicePort {
	if backend, use, ok := translate.ParseXBackendName(name); ok {
		return p.Graph.XBackendPort(c, backend, use)
	}
	service, port, use, ok := translate.ParseBackendName(name)
	if !ok {
		return nil
	}
	object, ok := flow.Get(c, p.Inputs.Services, service)
	if !ok {
		return nil
	}
	return p.Graph.PortOf(c, object, port, use)
}

// backendsOf yields every backend that a host's rules name, each once.
func backendsOf(h *ir.Host, yield func(string)) {
	var few [8]string
	seen := few[:0]
	once := func(name string) {
		if name != "" && !slices.Contains(seen, name) {
			seen = append(seen, name)
			yield(name)
		}
	}
	for _, r := range h.Rules {
		for _, b := range r.Backends {
			once(b.Backend)
		}
		for _, m := range r.Filters.Mirrors {
			once(m.Backend)
		}
		if a := r.Filters.Auth; a != nil {
			once(a.Backend)
		}
	}
}

// names reports whether a rule names a backend.
func names(r *ir.Rule, backend string) bool {
	return slices.ContainsFunc(r.Backends, func(b ir.WeightedBackend) bool { return b.Backend == backend }) ||
		slices.ContainsFunc(r.Filters.Mirrors, func(m ir.Mirror) bool { return m.Backend == backend }) ||
		r.Filters.Auth != nil && r.Filters.Auth.Backend == backend
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
