package control

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

// parseName is the inverse of object.Name.String.
func parseName(s string) object.Name {
	namespace, name, _ := strings.Cut(s, "/")
	return object.Name{Namespace: namespace, Name: name}
}

// Updates turns a commit into what each Gateway's proxies must hear of it.
func (p *Pipeline) Updates(c *flow.Commit) []xds.Update {
	p.unsettle(c)
	byGateway := map[object.Name]*xds.Update{}
	at := func(gateway object.Name) *xds.Update {
		u := byGateway[gateway]
		if u == nil {
			u = &xds.Update{Gateway: gateway.String()}
			byGateway[gateway] = u
		}
		return u
	}
	change := func(gateway object.Name, old, now *envoy.Resource) {
		switch {
		case now != nil && !now.Equal(old):
			u := at(gateway)
			u.Set = append(u.Set, now)
		case now == nil && old != nil:
			u := at(gateway)
			u.Remove = append(u.Remove, xds.Ref{Type: old.Type, Name: old.Name})
		}
	}
	for _, ch := range flow.Changes(c, p.members) {
		change(ch.Key.Gateway, ch.Old.cluster, ch.New.cluster)
		change(ch.Key.Gateway, ch.Old.endpoints, ch.New.endpoints)
	}
	for _, ch := range flow.Changes(c, p.collectors) {
		change(ch.Key.Gateway, ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(c, p.secrets) {
		change(ch.Key.Gateway, ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(c, p.listeners) {
		change(ch.Key.Gateway, ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(c, p.tables) {
		change(ch.Key.Gateway, ch.Old, ch.New)
	}
	for _, ch := range flow.Changes(c, p.fleets) {
		u := at(ch.Key) // a new Gateway is announced even while it has nothing to serve
		u.Gone = !ch.Has
	}
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
	slices.SortFunc(out, func(a, b xds.Update) int { return strings.Compare(a.Gateway, b.Gateway) })
	return out
}
