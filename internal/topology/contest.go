package topology

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// The rules of HTTPRoutes and GRPCRoutes must not be merged (GRPCRouteRule.matches),
// so that a host of a listener can have routes of one of the two kinds only. Where
// both want it, the oldest route has it, and a route that doesn't get one of its
// hosts is not accepted by the listener at all (GRPCRouteSpec.hostnames).
//
// Only routes on listeners where both kinds can meet pay for this, and those that
// share no host with the other kind wake nobody.

// contested reports whether HTTPRoutes and GRPCRoutes may meet on a listener: it
// takes both, and GRPCRoutes name its Gateway or ListenerSet.
func (g *Graph) contested(c *flow.Ctx, d *draft, names ...parentName) bool {
	if !hasKind(d.Kinds, gatewayGroup, "HTTPRoute") || !hasKind(d.Kinds, gatewayGroup, "GRPCRoute") {
		return false
	}
	return slices.ContainsFunc(names, func(n parentName) bool {
		_, some := flow.Get(c, g.grpcParents, n)
		return some
	})
}

// contestedHost is a host of a listener that both kinds want.
type contestedHost struct {
	Listener ListenerKey
	Domain   string
}

func (k contestedHost) compare(o contestedHost) int {
	return cmp.Or(k.Listener.Compare(o.Listener), strings.Compare(k.Domain, o.Domain))
}

// contender is a route that wants a contested host.
type contender struct {
	route   object.Key
	created time.Time
}

// compare orders contenders by age, then by "{namespace}/{name}" as the
// specification has it, in which a-b/x comes before a/x.
func (a contender) compare(b contender) int {
	return cmp.Or(a.created.Compare(b.created),
		strings.Compare(a.route.Name.String(), b.route.Name.String()), a.route.Kind.Compare(b.route.Kind))
}

// contenders are in the order of their keys.
type contenders []contender

// Equal reports whether two lists are the same.
func (l contenders) Equal(o contenders) bool { return slices.EqualFunc(l, o, contender.equal) }

func (a contender) equal(b contender) bool { return a.route == b.route && a.created.Equal(b.created) }

// defeat is how a route lost its place on a listener.
type defeat struct {
	domain string
	winner object.Key
}

// declareDefeats says which routes have to leave which listeners.
func (g *Graph) declareDefeats() flow.Table[AttachmentKey, defeat] {
	byHost := flow.NewIndex(g.parents,
		func(_ object.Key, parents []Parent, yield func(contestedHost)) {
			for i := range parents {
				for _, a := range parents[i].attached {
					if a.contested {
						for _, h := range a.Hosts {
							yield(contestedHost{a.Key.Listener, h.Domain})
						}
					}
				}
			}
		}, object.Key.Compare)
	hosts := flow.Group("topology-contested-hosts", byHost,
		func(c *flow.Ctx, _ contestedHost, members flow.Members[object.Key, []Parent]) (contenders, bool) {
			kinds := map[object.Kind]bool{}
			for k := range members.All() {
				kinds[k.Kind] = true
			}
			if len(kinds) < 2 {
				return nil, false
			}
			out := make(contenders, 0, members.Len())
			for k := range members.All() {
				if o, ok := flow.Get(c, g.in.Routes, k); ok {
					out = append(out, contender{k, o.GetCreationTimestamp().Time})
				}
			}
			return out, true
		})
	byListener := flow.NewIndex(hosts,
		func(k contestedHost, _ contenders, yield func(ListenerKey)) { yield(k.Listener) }, contestedHost.compare)
	contests := flow.Group("topology-contests", byListener,
		func(_ *flow.Ctx, _ ListenerKey, members flow.Members[contestedHost, contenders]) (map[object.Key]defeat, bool) {
			return decide(members), true
		}, flow.Equal(maps.Equal[map[object.Key]defeat]))
	return flow.Map("topology-defeats", contests,
		func(_ *flow.Ctx, listener ListenerKey, lost map[object.Key]defeat, emit func(AttachmentKey, defeat)) {
			for route, d := range lost {
				emit(AttachmentKey{Route: route, Listener: listener}, d)
			}
		}, flow.Equal(flow.Same[defeat]))
}

// decide goes through the contenders for the hosts of a listener from the oldest
// to the youngest. Those that lose stand in nobody's way.
func decide(hosts flow.Members[contestedHost, contenders]) map[object.Key]defeat {
	wanted := map[object.Key][]string{}
	var all contenders
	for k, list := range hosts.All() {
		for _, r := range list {
			if wanted[r.route] == nil {
				all = append(all, r)
			}
			wanted[r.route] = append(wanted[r.route], k.Domain)
		}
	}
	slices.SortFunc(all, contender.compare)
	holders := map[string]object.Key{} // the oldest of them
	lost := map[object.Key]defeat{}
	for _, r := range all {
		domains := wanted[r.route]
		taken := func(domain string) bool {
			holder, held := holders[domain]
			return held && holder.Kind != r.route.Kind
		}
		if i := slices.IndexFunc(domains, taken); i >= 0 {
			lost[r.route] = defeat{domains[i], holders[domains[i]]}
			continue
		}
		for _, d := range domains {
			if _, held := holders[d]; !held {
				holders[d] = r.route
			}
		}
	}
	return lost
}

// Parents returns the answers to a route's parentRefs that are ours; none for a
// route that is not in Routes.
func (g *Graph) Parents(c *flow.Ctx, route object.Key) []Parent {
	parents, _ := flow.Get(c, g.parents, route)
	return g.afterContests(c, parents)
}

// afterContests takes the listeners out of parents that the route has to leave.
func (g *Graph) afterContests(c *flow.Ctx, parents []Parent) []Parent {
	copied := false
	for i := range parents {
		left, accepted, lost := g.afterContest(c, &parents[i])
		if !lost {
			continue
		}
		if !copied {
			parents, copied = slices.Clone(parents), true
		}
		parents[i].attached, parents[i].Accepted = left, accepted
	}
	return parents
}

func (g *Graph) afterContest(c *flow.Ctx, p *Parent) (left []*Attachment, accepted metav1.Condition, lost bool) {
	if !slices.ContainsFunc(p.attached, func(a *Attachment) bool { return a.contested }) {
		return p.attached, p.Accepted, false
	}
	var losses []string
	for _, a := range p.attached {
		if d, ok := flow.Get(c, g.defeats, a.Key); ok {
			losses = append(losses, condition.HostTaken(a.Key.Listener.Name, d.domain, d.winner.String()))
			continue
		}
		left = append(left, a)
	}
	switch {
	case len(losses) == 0:
		return p.attached, p.Accepted, false
	case len(left) == 0:
		return nil, condition.RouteHostsTaken(losses), true
	default:
		return left, condition.RouteAcceptedInPart(losses), true
	}
}
