package topology

import (
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
	"github.com/gatehouse-dev/gatehouse/internal/policy/traffic"
)

// declarePoliciesOf orders policies and XBackends under the fleets of the Gateways that they concern.
func (g *Graph) declarePoliciesOf() {
	under := func(_ object.Name, list []Ancestor, yield func(object.Name)) {
		for _, a := range list {
			yield(a.Fleet)
		}
	}
	g.tlsPoliciesOf = flow.NewIndex(g.Ancestors, under, object.Name.Compare)
	g.xBackendsOf = flow.NewIndex(g.XBackendAncestors, under, object.Name.Compare)
	g.routeFiltersOf = flow.NewIndex(g.routeFilterAncestors, under, object.Name.Compare)
	g.authPoliciesOf = flow.NewIndex(g.AuthAncestors, under, object.Name.Compare)
	g.trafficPoliciesOf = flow.NewIndex(g.TrafficAncestors, under, object.Name.Compare)
}

// Contents yields the Secrets and ConfigMaps that are read for a fleet: what its Gateways, their
// ListenerSets, and policies and backends that concern them refer to and may refer to. One
// comes as often as it is referred to.
func (g *Graph) Contents(c *flow.Ctx, fleet object.Name, yield func(object.Key)) {
	for k := range flow.Select(c, g.certificatesOf, fleet).All() {
		yield(object.Key{Kind: kind.Secret, Name: k.ref})
	}
	authority := func(ref object.Key) {
		if ref.Kind == kind.Secret || ref.Kind == kind.ConfigMap {
			yield(ref)
		}
	}
	for k := range flow.Select(c, g.authoritiesOf, fleet).All() {
		authority(k.ref)
	}
	for name := range flow.Select(c, g.tlsPoliciesOf, fleet).All() {
		if p, ok := flow.Get(c, g.in.BackendTLSPolicies, name); ok {
			authoritiesOf(p, authority)
		}
	}
	for name := range flow.Select(c, g.authPoliciesOf, fleet).All() {
		if p, ok := flow.Get(c, g.in.AuthPolicies, name); ok {
			auth.Contents(p, yield)
		}
	}
	for name := range flow.Select(c, g.trafficPoliciesOf, fleet).All() {
		if p, ok := flow.Get(c, g.in.TrafficPolicies, name); ok {
			traffic.Contents(p, func(n object.Name) { yield(object.Key{Kind: kind.ConfigMap, Name: n}) })
		}
	}
	for name := range flow.Select(c, g.routeFiltersOf, fleet).All() {
		if f, ok := flow.Get(c, g.in.RouteFilters, name); ok {
			if _, from := bodyOf(f); !from.IsZero() {
				yield(object.Key{Kind: kind.ConfigMap, Name: from})
			}
		}
	}
	for name := range flow.Select(c, g.xBackendsOf, fleet).All() {
		if o, ok := flow.Get(c, g.in.XBackends, name); ok && validationOf(o) != nil {
			authoritiesOf(validationOf(o), authority)
		}
	}
}
