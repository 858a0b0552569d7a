package topology

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// The rules of HTTPRoutes and GRPCRoutes must not be merged (GRPCRouteRule.matches),
// so that a host of a listener can have routes of one of the two kinds only. Where
// routes of both kinds ask for a host, the kind of the oldest route gets it. A route
// that doesn't get one of its hosts is not accepted by the listener at all
// (GRPCRouteSpec.hostnames).
//
// This costs nothing for listeners where the two kinds can't meet. A route that shares no
// host with the other kind makes no other route compute anything.

// mixesKinds reports whether HTTPRoutes and GRPCRoutes may meet on a listener: it
// allows both, and GRPCRoutes name its Gateway or ListenerSet.
func (g *Graph) mixesKinds(c *flow.Ctx, d *draft, names ...parentName) bool {
	if !hasKind(d.Kinds, gatewayGroup, gwv1.Kind(kind.HTTPRoute.Name())) || !hasKind(d.Kinds, gatewayGroup, gwv1.Kind(kind.GRPCRoute.Name())) {
		return false
	}
	return slices.ContainsFunc(names, func(n parentName) bool {
		_, some := flow.Get(c, g.grpcParents, n)
		return some
	})
}

// mixedHost is a host of a listener that routes of both kinds ask for.
type mixedHost struct {
	Listener ListenerKey
	Domain   string
}

func (k mixedHost) compare(o mixedHost) int {
	return cmp.Or(k.Listener.Compare(o.Listener), strings.Compare(k.Domain, o.Domain))
}

// hostRoute is a route that asks for a mixed host.
type hostRoute struct {
	route   object.Key
	created time.Time
}

// compare orders routes by age, then by "{namespace}/{name}" as the
// specification has it, in which a-b/x comes before a/x.
func (a hostRoute) compare(b hostRoute) int {
	return cmp.Or(a.created.Compare(b.created),
		strings.Compare(a.route.Name.String(), b.route.Name.String()), a.route.Kind.Compare(b.route.Kind))
}

// hostRoutes are in the order of their keys.
type hostRoutes []hostRoute

// Equal reports whether two lists are the same.
func (l hostRoutes) Equal(o hostRoutes) bool { return slices.EqualFunc(l, o, hostRoute.equal) }

func (a hostRoute) equal(b hostRoute) bool { return a.route == b.route && a.created.Equal(b.created) }

// hostConflict is why a listener doesn't accept a route.
type hostConflict struct {
	domain string
	winner object.Key // the oldest route that has the host
}

// declareHostConflicts decides which listeners don't accept which routes.
func (g *Graph) declareHostConflicts() flow.Table[AttachmentKey, hostConflict] {
	byHost := flow.NewIndex(g.parents,
		func(_ object.Key, parents []Parent, yield func(mixedHost)) {
			for i := range parents {
				for _, a := range parents[i].attached {
					if a.mixesKinds {
						for _, h := range a.Hosts {
							yield(mixedHost{a.Key.Listener, h.Domain})
						}
					}
				}
			}
		}, object.Key.Compare)
	hosts := flow.Group("topology-mixed-hosts", byHost,
		func(c *flow.Ctx, _ mixedHost, members flow.Members[object.Key, []Parent]) (hostRoutes, bool) {
			kinds := map[object.Kind]bool{}
			for k := range members.All() {
				kinds[k.Kind] = true
			}
			if len(kinds) < 2 {
				return nil, false
			}
			out := make(hostRoutes, 0, members.Len())
			for k := range members.All() {
				if o, ok := flow.Get(c, g.in.Routes, k); ok {
					out = append(out, hostRoute{k, o.GetCreationTimestamp().Time})
				}
			}
			return out, true
		})
	byListener := flow.NewIndex(hosts,
		func(k mixedHost, _ hostRoutes, yield func(ListenerKey)) { yield(k.Listener) }, mixedHost.compare)
	conflicts := flow.Group("topology-listener-host-conflicts", byListener,
		func(_ *flow.Ctx, _ ListenerKey, members flow.Members[mixedHost, hostRoutes]) (map[object.Key]hostConflict, bool) {
			return resolveHostConflicts(members), true
		}, flow.Equal(maps.Equal[map[object.Key]hostConflict]))
	return flow.Map("topology-host-conflicts", conflicts,
		func(_ *flow.Ctx, listener ListenerKey, lost map[object.Key]hostConflict, emit func(AttachmentKey, hostConflict)) {
			for route, d := range lost {
				emit(AttachmentKey{Route: route, Listener: listener}, d)
			}
		}, flow.Equal(flow.Same[hostConflict]))
}

// declareUntold says for operators which routes have hosts that others can't have, where
// these are not told.
func (g *Graph) declareUntold() flow.Table[AttachmentKey, string] {
	return flow.Map("topology-untold-host-conflicts", g.hostConflicts,
		func(_ *flow.Ctx, k AttachmentKey, d hostConflict, emit func(AttachmentKey, string)) {
			if !g.options.Reader(k.Route.Namespace).Sees(d.winner.Namespace) {
				emit(k, condition.HostTaken(k.Listener.Name(), d.domain, d.winner.String()))
			}
		}, flow.Equal(flow.Same[string]))
}

// resolveHostConflicts goes through the routes that ask for the mixed hosts of a listener,
// from the oldest to the youngest. A route that is not accepted is no obstacle to younger
// ones.
func resolveHostConflicts(hosts flow.Members[mixedHost, hostRoutes]) map[object.Key]hostConflict {
	requested := map[object.Key][]string{} // domains
	var all hostRoutes
	for k, list := range hosts.All() {
		for _, r := range list {
			if requested[r.route] == nil {
				all = append(all, r)
			}
			requested[r.route] = append(requested[r.route], k.Domain)
		}
	}
	slices.SortFunc(all, hostRoute.compare)
	owners := map[string]object.Key{} // by domain, the oldest route
	lost := map[object.Key]hostConflict{}
	for _, r := range all {
		domains := requested[r.route]
		ofOtherKind := func(domain string) bool {
			owner, owned := owners[domain]
			return owned && owner.Kind != r.route.Kind
		}
		if i := slices.IndexFunc(domains, ofOtherKind); i >= 0 {
			lost[r.route] = hostConflict{domains[i], owners[domains[i]]}
			continue
		}
		for _, d := range domains {
			if _, owned := owners[d]; !owned {
				owners[d] = r.route
			}
		}
	}
	return lost
}

// Parents returns the answers to a route's parentRefs that are ours; none for a
// route that is not in Routes.
func (g *Graph) Parents(c *flow.Ctx, route object.Key) []Parent {
	parents, _ := flow.Get(c, g.parents, route)
	return g.withoutHostConflicts(c, parents)
}

// withoutHostConflicts removes from parents the listeners that don't accept the route.
func (g *Graph) withoutHostConflicts(c *flow.Ctx, parents []Parent) []Parent {
	copied := false
	for i := range parents {
		left, accepted, lost := g.withoutHostConflict(c, &parents[i])
		if !lost {
			continue
		}
		if !copied {
			parents, copied = slices.Clone(parents), true
		}
		parents[i].attached, parents[i].Answer = left, &accepted
	}
	return parents
}

func (g *Graph) withoutHostConflict(c *flow.Ctx, p *Parent) (left []*Attachment, accepted metav1.Condition, lost bool) {
	if !slices.ContainsFunc(p.attached, func(a *Attachment) bool { return a.mixesKinds }) {
		return p.attached, p.Accepted(), false
	}
	var losses []string
	for _, a := range p.attached {
		if d, ok := flow.Get(c, g.hostConflicts, a.Key); ok {
			winner := g.options.Reader(a.Key.Route.Namespace).Object(d.winner.Kind.Name(), d.winner.Namespace, d.winner.Name.Name)
			losses = append(losses, condition.HostTaken(a.Key.Listener.Name(), d.domain, winner))
			continue
		}
		left = append(left, a)
	}
	switch {
	case len(losses) == 0:
		return p.attached, p.Accepted(), false
	case len(left) == 0:
		return nil, condition.RouteHostsTaken(losses), true
	default:
		in := condition.RouteAcceptedInPart(losses)
		in.Message += strings.TrimPrefix(p.Accepted().Message, condition.RouteAccepted().Message) // its notes
		return left, in, true
	}
}
