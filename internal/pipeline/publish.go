package pipeline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// Updates turns a commit into what each Gateway's proxies must hear of it.
func (p *Pipeline) Updates(c *flow.Commit) []xds.Update {
	p.changedGateways = append(p.changedGateways, flow.Changes[object.Name, *topology.Gateway](c, p.Graph.Gateways)...)
	p.pairs.changed = append(p.pairs.changed, flow.Changes[object.Name, *topology.Certificate](c, p.Graph.Certificates)...)
	p.shards.changed = append(p.shards.changed, flow.Changes(c, p.Sharded)...)
	p.demand.changed = append(p.demand.changed, flow.Changes(c, p.OnDemand)...)
	byGateway := map[object.Name]*xds.Update{}
	at := func(gateway object.Name) *xds.Update {
		u := byGateway[gateway]
		if u == nil {
			u = &xds.Update{Gateway: gateway}
			byGateway[gateway] = u
		}
		return u
	}
	change := func(gateway object.Name, old, now *envoy.Resource) {
		switch {
		case now != nil && (!now.Equal(old) || !now.CarriesAlike(old)):
			u := at(gateway)
			u.Set = append(u.Set, now)
		case now == nil && old != nil:
			u := at(gateway)
			u.Remove = append(u.Remove, xds.Ref{Type: old.Type, Name: old.Name})
		}
	}
	for _, ch := range flow.Changes(c, p.Members) {
		change(ch.Key.Gateway, ch.Old.Cluster, ch.New.Cluster)
		change(ch.Key.Gateway, ch.Old.Endpoints, ch.New.Endpoints)
	}
	for _, ch := range flow.Changes(c, p.Collectors) {
		change(ch.Key.Gateway, ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(c, p.Secrets) {
		change(ch.Key.Gateway, ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(c, p.TableAccess) {
		change(ch.Key.Gateway, ch.Old.Resource, ch.New.Resource)
	}
	for _, ch := range flow.Changes(c, p.LimitFilters) {
		change(ch.Key.Gateway, ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(c, p.Forwarders) {
		change(ch.Key.Gateway, ch.Old.Resource, ch.New.Resource)
	}
	for _, ch := range flow.Changes(c, p.Listeners) {
		change(ch.Key.Gateway, ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(c, p.Scopes) {
		change(ch.Key.Gateway, ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(c, p.RouteConfigurations) {
		change(ch.Key.Gateway, ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(c, p.Fleets) {
		u := at(ch.Key) // a new Gateway is announced even while it has nothing to serve
		u.Gone = !ch.Has
	}
	for gateway, tables := range p.shards.took {
		at(gateway).TookForms = tables
	}
	clear(p.shards.took)
	out := make([]xds.Update, 0, len(byGateway))
	for _, u := range byGateway {
		slices.SortFunc(u.Set, func(a, b *envoy.Resource) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
		})
		slices.SortFunc(u.Remove, func(a, b xds.Ref) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
		})
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b xds.Update) int { return a.Gateway.Compare(b.Gateway) })
	return out
}
