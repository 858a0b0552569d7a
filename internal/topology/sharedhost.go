package topology

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// hostPort is a port of a host: TCP and UDP ports of one number are two.
type hostPort struct {
	port uint16
	udp  bool
}

func (p hostPort) compare(o hostPort) int {
	return cmp.Or(cmp.Compare(p.port, o.port), last(p.udp)-last(o.udp))
}

// hostPort is what the listener needs of a host.
func (d *draft) hostPort() hostPort { return hostPort{d.Port, d.family == datagrams} }

// portRequestKey names the request of a Gateway for a port of the shared host.
type portRequestKey struct {
	hostPort
	Gateway object.Name
}

func (k portRequestKey) compare(o portRequestKey) int {
	return cmp.Or(k.hostPort.compare(o.hostPort), k.Gateway.Compare(o.Gateway))
}

// portRequest is a Gateway's request for a port. It carries what decides between several.
type portRequest struct {
	fleet     object.Name // whose Gateways have ports together
	created   time.Time
	addresses []netip.Addr
	optional  bool // all others precede it: HTTP/3 that is on by default
}

// Equal reports whether two requests are the same.
func (r portRequest) Equal(o portRequest) bool {
	return r.fleet == o.fleet && r.created.Equal(o.created) && r.optional == o.optional && slices.Equal(r.addresses, o.addresses)
}

// portConflicts names, for each Gateway that can't have a port, the one that has it.
type portConflicts map[object.Name]object.Name

// Equal reports whether the same Gateways can't have the port, for the same ones.
func (p portConflicts) Equal(o portConflicts) bool { return maps.Equal(p, o) }

// MarshalJSON prints names as text, for people.
func (p portConflicts) MarshalJSON() ([]byte, error) {
	out := make(map[string]string, len(p))
	for loser, winner := range p {
		out[loser.String()] = winner.String()
	}
	return json.Marshal(out)
}

// declarePortConflicts decides which of the Gateways on a shared host get a port: the
// oldest of those whose addresses overlap. A Gateway that doesn't get the port is no
// obstacle to younger ones.
func (g *Graph) declarePortConflicts() flow.Table[hostPort, portConflicts] {
	requests := flow.Map("topology-port-requests", g.owned,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(portRequestKey, portRequest)) {
			class, ok := g.class(c, gw)
			if !ok || class.refuses() {
				return
			}
			parameters, fleet := g.parametersOf(c, name), g.FleetOf(c, name)
			if parameters.refused != nil && !parameters.frozen || g.refusesMember(c, fleet, gw) != nil {
				return
			}
			a := g.requestedAddresses(gw)
			if a.refused != nil || a.none {
				return
			}
			optional := map[hostPort]bool{} // of each port, whether all that asks for it is optional
			add := func(p hostPort, isOptional bool) {
				before, requested := optional[p]
				optional[p] = isOptional && (before || !requested)
			}
			for _, d := range g.drafts(c, gw, fleet, parameters.edge()) {
				if d.accepted.Status != metav1.ConditionTrue {
					continue
				}
				add(d.hostPort(), false)
				if d.HTTP3 {
					add(hostPort{d.Port, true}, !d.asksHTTP3())
				}
			}
			ofSets, _ := flow.Get(c, g.gatewaySetPorts, name)
			for _, p := range ofSets {
				add(p.hostPort, p.optional)
			}
			addresses := a.effective(g.options.DefaultAddresses)
			for _, p := range slices.SortedFunc(maps.Keys(optional), hostPort.compare) {
				emit(portRequestKey{p, name}, portRequest{fleet, gw.CreationTimestamp.Time, addresses, optional[p]})
			}
		})
	byPort := flow.NewIndex(requests,
		func(k portRequestKey, _ portRequest, yield func(hostPort)) { yield(k.hostPort) }, portRequestKey.compare)
	return flow.Group("topology-port-conflicts", byPort,
		func(_ *flow.Ctx, _ hostPort, members flow.Members[portRequestKey, portRequest]) (portConflicts, bool) {
			return decidePort(members), true
		})
}

// decidePort goes through the requests for one port from the oldest to the youngest, and
// through the optional ones at the end.
func decidePort(members flow.Members[portRequestKey, portRequest]) portConflicts {
	type requester struct {
		name object.Name
		portRequest
	}
	all := make([]requester, 0, members.Len())
	for k, r := range members.All() {
		all = append(all, requester{k.Gateway, r})
	}
	slices.SortFunc(all, func(a, b requester) int {
		if a.optional != b.optional {
			return last(a.optional) - last(b.optional)
		}
		return cmp.Or(a.created.Compare(b.created), a.name.Compare(b.name))
	})
	conflicts := portConflicts{}
	var owners []requester
	for _, r := range all {
		i := slices.IndexFunc(owners, func(o requester) bool { return o.fleet != r.fleet && overlapAny(o.addresses, r.addresses) })
		if i < 0 {
			owners = append(owners, r)
			continue
		}
		conflicts[r.name] = owners[i].name
	}
	return conflicts
}

func overlapAny(a, b []netip.Addr) bool {
	return slices.ContainsFunc(a, func(x netip.Addr) bool {
		return slices.ContainsFunc(b, func(y netip.Addr) bool { return overlap(x, y) })
	})
}
