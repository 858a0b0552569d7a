package control

import (
	"cmp"
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
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

// perAddress splits a listener into one for each of its addresses. Envoy can't
// change the addresses of a listener that serves without closing its sockets, but
// it can gain and lose listeners.
func perAddress(l *ir.Listener) []*ir.Listener {
	out := make([]*ir.Listener, 0, len(l.Addresses))
	for _, address := range l.Addresses {
		one := *l
		one.Name += addressMark + address
		one.Addresses = []string{address}
		out = append(out, &one)
	}
	return out
}

// addressMark stands between a listener's name and the address that it binds.
const addressMark = "@"

// member is a backend's resources, as one Gateway refers to them.
type member struct {
	cluster, endpoints *envoy.Resource
}

func (m member) Equal(o member) bool {
	return m.cluster.Equal(o.cluster) && m.endpoints.Equal(o.endpoints)
}

// declareResources declares what proxies are sent.
func (p *Pipeline) declareResources() {
	marshal := func(_ *flow.Ctx, k ir.HostKey, h *ir.Host, emit func(ir.HostKey, *hostPart)) {
		part, errs := envoy.HostPart(h)
		if part != nil {
			emit(k, &hostPart{part, errs})
		}
	}
	p.hostParts = flow.Map("virtual-hosts", p.hosts, marshal)
	p.vacParts = flow.Map("vacant-virtual-hosts", p.vacant, marshal)

	byTable := func(k ir.HostKey, _ *hostPart, yield func(ir.TableKey)) { yield(configurationOf(k)) }
	served := flow.NewIndex(p.hostParts, byTable, ir.HostKey.Compare)
	vacant := flow.NewIndex(p.vacParts, byTable, ir.HostKey.Compare)
	p.tables = flow.Map("route-configurations", p.origins,
		func(c *flow.Ctx, k ir.TableKey, _ tableOrigin, emit func(ir.TableKey, *envoy.Resource)) {
			emit(k, envoy.RouteTable(k.Table, merge(flow.Select(c, served, k), flow.Select(c, vacant, k))))
		})

	p.listeners = flow.Map("listener-resources", p.ports,
		func(_ *flow.Ctx, k portKey, v *port, emit func(resourceKey, *envoy.Resource)) {
			for _, l := range perAddress(v.listener) {
				// Parts of a listener that can't be expressed are left out of it, and
				// the error says which; the rest serves.
				if resource, _ := envoy.Listener(l); resource != nil {
					emit(resourceKey{k.Gateway, l.Name}, resource)
				}
			}
		})
	p.fleets = flow.Count("fleets", p.ports,
		func(k portKey, _ *port, yield func(ir.Name)) { yield(k.Gateway) })

	p.declareBackends()

	certificates := flow.Count("certificates", p.ports,
		func(_ portKey, v *port, yield func(resourceKey)) {
			for _, chain := range v.listener.Chains {
				if chain.TLS == nil {
					continue
				}
				for _, name := range chain.TLS.Certificates {
					yield(resourceKey{v.listener.Gateway, name})
				}
			}
		})
	p.secrets = flow.Map("secret-resources", certificates,
		func(c *flow.Ctx, k resourceKey, _ int, emit func(resourceKey, *envoy.Resource)) {
			object, ok := flow.Get(c, p.inputs.Secrets, parseName(k.Name))
			if !ok {
				return
			}
			// A pair that can't be used is a problem of its listener already.
			if resource, err := envoy.Secret(translate.Secret(k.Name, object)); err == nil {
				emit(k, resource)
			}
		})
}

// declareBackends declares clusters and endpoints: marshalled once for each
// backend in use, then referred to by each Gateway that uses it.
func (p *Pipeline) declareBackends() {
	used := flow.Count("used-backends", p.hosts,
		func(_ ir.HostKey, h *ir.Host, yield func(string)) { backendsOf(h, yield) })
	p.backends = flow.Map("backends", used,
		func(c *flow.Ctx, name string, _ int, emit func(string, *ir.Backend)) {
			service, port, ok := translate.ParseBackendName(name)
			if !ok {
				return
			}
			object, ok := flow.Get(c, p.inputs.Services, service)
			if !ok {
				return
			}
			if sp := topology.PortOf(object, port); sp != nil {
				if b := translate.Backend(sp); b.Name == name {
					emit(name, b)
				}
			}
		})
	resources := flow.Map("backend-resources", p.backends,
		func(c *flow.Ctx, name string, b *ir.Backend, emit func(string, member)) {
			var m member
			var err error
			if m.cluster, err = envoy.Cluster(b); err != nil {
				return
			}
			if b.DNS == "" {
				slices := flow.Select(c, p.inputs.SlicesByService, b.Service)
				if m.endpoints, err = envoy.LoadAssignment(translate.Endpoints(b, slices.All())); err != nil {
					m.endpoints = envoy.EmptyEndpoints(name)
				}
			}
			emit(name, m)
		})
	p.hostsByBackend = flow.NewIndex(p.hosts,
		func(k ir.HostKey, h *ir.Host, yield func(resourceKey)) {
			backendsOf(h, func(name string) { yield(resourceKey{k.Gateway, name}) })
		}, ir.HostKey.Compare)
	p.members = flow.Group("gateway-backends", p.hostsByBackend,
		func(c *flow.Ctx, k resourceKey, _ flow.Members[ir.HostKey, *ir.Host]) (member, bool) {
			return flow.Get(c, resources, k.Name)
		})
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
	}
}

// names reports whether a rule names a backend.
func names(r *ir.Rule, backend string) bool {
	return slices.ContainsFunc(r.Backends, func(b ir.WeightedBackend) bool { return b.Backend == backend }) ||
		slices.ContainsFunc(r.Filters.Mirrors, func(m ir.Mirror) bool { return m.Backend == backend })
}

// merge returns two sorted sets of parts as one.
func merge(a, b flow.Members[ir.HostKey, *hostPart]) []*envoy.Part {
	out := make([]*envoy.Part, 0, a.Len()+b.Len())
	i, j := 0, 0
	for i < a.Len() || j < b.Len() {
		var pa, pb *hostPart
		order := 0
		switch {
		case i == a.Len():
			order = 1
		case j == b.Len():
			order = -1
		default:
			ka, _ := a.At(i)
			kb, _ := b.At(j)
			order = cmp.Compare(ka.Domain, kb.Domain)
		}
		if order <= 0 {
			_, pa = a.At(i)
			out = append(out, pa.part)
			i++
		} else {
			_, pb = b.At(j)
			out = append(out, pb.part)
			j++
		}
	}
	return out
}
