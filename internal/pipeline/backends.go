package pipeline

import (
	"cmp"
	"errors"
	"slices"

	"github.com/cespare/xxhash/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// BackendKey names a backend of one Gateway.
type BackendKey struct {
	Gateway object.Name
	Backend ir.BackendKey
}

func (k BackendKey) String() string { return k.Gateway.String() + "/" + k.Backend.String() }

func (k BackendKey) compare(o BackendKey) int {
	return cmp.Or(k.Gateway.Compare(o.Gateway), k.Backend.Compare(o.Backend))
}

// Member is a backend's resources, as one Gateway refers to them.
type Member struct {
	Cluster, Endpoints *envoy.Resource
	tls                *ir.BackendTLS // nil for clear text
	odd                *oddities      // nil for most
}

// oddities are what few backends have. A Member is copied at each step of a change, so
// they don't stand in it.
type oddities struct {
	leftOut *condition.Omission // nil where nothing is
	// barred is why the Gateway's routes may not lead there: a ResolvedRefs condition.
	// There are no resources then, and requests are answered with 500.
	barred *metav1.Condition
	local  []socket // of the endpoints, those on this host
	// patched is what patches have made of the cluster.
	patched *Patched
}

// oddities are all empty where there are none.
func (m Member) oddities() oddities {
	if m.odd == nil {
		return oddities{}
	}
	return *m.odd
}

// Equal reports whether two have the same resources.
func (m Member) Equal(o Member) bool {
	a, b := m.oddities(), o.oddities()
	return m.Cluster.Equal(o.Cluster) && m.Endpoints.Equal(o.Endpoints) && ptr.Equal(m.tls, o.tls) &&
		a.leftOut.Equal(b.leftOut) && ptr.Equal(a.barred, b.barred) && slices.Equal(a.local, b.local) && a.patched.equal(b.patched)
}

// declareBackends declares clusters and endpoints: marshalled once for each
// backend in use, then referred to by each Gateway that uses it.
func (p *Pipeline) declareBackends() {
	p.tablesAsking = p.tableServices()
	used := flow.Keys("backends",
		func(_ ir.HostKey, h *ir.Host, yield func(ir.BackendKey)) { backendsOf(h, yield) }, p.Hosts, p.forwards, p.tablesAsking)
	resources := flow.Map("backend-resources", used,
		func(c *flow.Ctx, k ir.BackendKey, _ struct{}, emit func(ir.BackendKey, Member)) {
			b := k.Backend()
			if b.IsPool() {
				return
			}
			var m Member
			var err error
			if m.Cluster, err = envoy.Cluster(&b); err != nil {
				return
			}
			if !b.TLS.IsZero() {
				m.tls = new(b.TLS)
			}
			if b.DNS == "" {
				endpoints := p.Endpoints(c, k)
				odd := oddities{local: p.localSockets(endpoints)}
				m.Endpoints, err = envoy.LoadAssignment(m.Cluster.Name, endpoints)
				if m.Endpoints == nil {
					m.Endpoints = envoy.EmptyEndpoints(m.Cluster.Name)
				}
				// An endpoint that can't be used is left out; the others serve.
				if unusable := (*envoy.AddressError)(nil); errors.As(err, &unusable) {
					odd.leftOut = &condition.Omission{Service: b.Object.Name.String(), Addresses: unusable.Addresses}
				}
				if odd.leftOut != nil || odd.local != nil {
					m.odd = &odd
				}
			}
			emit(k, m)
		})
	p.hostsByBackend = flow.NewIndex(p.Hosts,
		func(k ir.HostKey, h *ir.Host, yield func(BackendKey)) {
			backendsOf(h, func(b ir.BackendKey) { yield(BackendKey{k.Gateway(), b}) })
		}, ir.HostKey.Compare)
	p.hostsByBackend.Also(p.forwards)
	p.hostsByBackend.Also(p.tablesAsking)
	p.Members = flow.Group("gateway-backends", p.hostsByBackend,
		func(c *flow.Ctx, k BackendKey, _ flow.Members[ir.HostKey, *ir.Host]) (Member, bool) {
			m, ok := flow.Get(c, resources, k.Backend)
			if !ok {
				pool, ok := flow.Get(c, p.pools, k)
				return p.patchMember(c, k, pool), ok
			}
			if why := p.barred(c, k, m.oddities().local); why != nil {
				return Member{odd: &oddities{barred: why}}, true
			}
			return p.patchMember(c, k, p.ownMember(c, k, m)), true
		})
	p.byClusterName = flow.NewIndex(p.Members,
		func(_ BackendKey, m Member, yield func(nameBucket)) {
			if m.Cluster != nil {
				yield(nameBucketOf(m.Cluster.Name))
			}
		}, BackendKey.compare)
}

// nameBucket is some of the names of clusters. Only a refusal asks for a cluster by
// its name, and hardly ever is there one: an order by names themselves would cost ten
// times the room.
type nameBucket uint8

func nameBucketOf(cluster string) nameBucket {
	return nameBucket(xxhash.Sum64String(cluster)) //nolint:gosec // a part of the hash
}

// named returns the backend whose cluster a Gateway's proxies know by a name; zero
// where none is.
func (p *Pipeline) named(c *flow.Ctx, gateway object.Name, cluster string) ir.BackendKey {
	for k, m := range flow.Select(c, p.byClusterName, nameBucketOf(cluster)).All() {
		if k.Gateway == gateway && m.Cluster.Name == cluster {
			return k.Backend
		}
	}
	return ir.BackendKey{}
}

// backendsOf yields every backend that a host's requests may reach, each once.
func backendsOf(h *ir.Host, yield func(ir.BackendKey)) {
	var few [8]ir.BackendKey
	seen := few[:0]
	once := func(k ir.BackendKey) {
		if !k.IsZero() && !slices.Contains(seen, k) {
			seen = append(seen, k)
			yield(k)
		}
	}
	for _, f := range []*ir.Filters{h.Around, h.Filters} {
		if f != nil {
			backendsOfFilters(f, once)
			servicesOf(f.Access, once)
			f.Traffic.Backends(once)
		}
	}
	if h.Prerouting != nil {
		for _, a := range h.Prerouting.Auth {
			once(a.Backend)
		}
	}
	for _, r := range h.Rules {
		backendsOfRule(r, once)
		servicesOf(r.Filters.Access, once)
		r.Filters.Traffic.Backends(once)
	}
}

func backendsOfRule(r *ir.Rule, yield func(ir.BackendKey)) {
	for i := range r.Backends {
		yield(r.Backends[i].Backend)
		yield(r.Backends[i].Backend.Picker().Service)
	}
	backendsOfFilters(&r.Filters, yield)
}

func backendsOfFilters(f *ir.Filters, yield func(ir.BackendKey)) {
	for _, m := range f.Mirrors {
		yield(m.Backend)
	}
	if f.Auth != nil {
		yield(f.Auth.Backend)
	}
}

// refersTo reports whether requests that a rule of a host takes may reach a backend that its route
// refers to.
func refersTo(h *ir.Host, r *ir.Rule, backend ir.BackendKey) bool {
	found := false
	look := func(k ir.BackendKey) { found = found || k == backend }
	for _, f := range []*ir.Filters{h.Around, h.Filters} {
		if f != nil {
			backendsOfFilters(f, look)
		}
	}
	backendsOfRule(r, look)
	return found
}

// Endpoints are where requests to a backend are sent: to its endpoints, or to its cluster IP where that is wanted and there is
// one.
func (p *Pipeline) Endpoints(c *flow.Ctx, k ir.BackendKey) []ir.Endpoint {
	b := k.Backend()
	if b.Settings.ClusterIP {
		if at := translate.AtAddress(p.Graph.ClusterIP(c, b.Object), b.Port); at != nil {
			return at
		}
	}
	if b.Object.Kind == kind.InferencePool {
		return translate.PodEndpoints(p.Graph.PodsOf(c, b.Object.Name))
	}
	return translate.Endpoints(k, flow.Select(c, p.Inputs.SlicesByBackend, b.Object).All())
}
