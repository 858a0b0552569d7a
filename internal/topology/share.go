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

// claimKey is a port that a Gateway wants.
type claimKey struct {
	hostPort
	Gateway object.Name
}

func (k claimKey) compare(o claimKey) int {
	return cmp.Or(k.hostPort.compare(o.hostPort), k.Gateway.Compare(o.Gateway))
}

// claim is where and since when the Gateway wants the port.
type claim struct {
	created   time.Time
	addresses []netip.Addr
	yields    bool // to all who don't: HTTP/3 that nobody has asked for
}

// Equal reports whether two claims are the same.
func (c claim) Equal(o claim) bool {
	return c.created.Equal(o.created) && c.yields == o.yields && slices.Equal(c.addresses, o.addresses)
}

// portUse names, for each Gateway that can't have a port, the one that has it.
type portUse map[object.Name]object.Name

// Equal reports whether two uses are the same.
func (p portUse) Equal(o portUse) bool { return maps.Equal(p, o) }

// MarshalJSON prints names as text, for people.
func (p portUse) MarshalJSON() ([]byte, error) {
	out := make(map[string]string, len(p))
	for loser, winner := range p {
		out[loser.String()] = winner.String()
	}
	return json.Marshal(out)
}

// declarePorts decides which of the Gateways on a shared host get a port. The
// oldest one does; those that it leaves empty-handed stand in nobody's way.
func (g *Graph) declarePorts() flow.Table[hostPort, portUse] {
	claims := flow.Map("topology-claims", g.owned,
		func(c *flow.Ctx, name object.Name, gw *gwv1.Gateway, emit func(claimKey, claim)) {
			class, ok := g.class(c, gw)
			if !ok || class.refuses() {
				return
			}
			parameters := g.parametersOf(c, name)
			if parameters.refused != nil && !parameters.held {
				return
			}
			a := g.requestedAddresses(gw)
			if a.refused != nil || a.none {
				return
			}
			yields := map[hostPort]bool{} // of each port, whether all that is wanted of it gives way
			add := func(p hostPort, yield bool) {
				before, claimed := yields[p]
				yields[p] = yield && (before || !claimed)
			}
			for _, d := range draftListeners(gw, g.options, parameters.edge()) {
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
				add(p.hostPort, p.yields)
			}
			addresses := a.effective(g.options.DefaultAddresses)
			for _, p := range slices.SortedFunc(maps.Keys(yields), hostPort.compare) {
				emit(claimKey{p, name}, claim{gw.CreationTimestamp.Time, addresses, yields[p]})
			}
		})
	byPort := flow.NewIndex(claims,
		func(k claimKey, _ claim, yield func(hostPort)) { yield(k.hostPort) }, claimKey.compare)
	return flow.Group("topology-ports", byPort,
		func(_ *flow.Ctx, _ hostPort, members flow.Members[claimKey, claim]) (portUse, bool) {
			return settle(members), true
		})
}

// settle goes through the claims to one port from the oldest to the youngest, and
// then through those that give way to all others.
func settle(members flow.Members[claimKey, claim]) portUse {
	type claimant struct {
		name object.Name
		claim
	}
	all := make([]claimant, 0, members.Len())
	for k, c := range members.All() {
		all = append(all, claimant{k.Gateway, c})
	}
	slices.SortFunc(all, func(a, b claimant) int {
		if a.yields != b.yields {
			return last(a.yields) - last(b.yields)
		}
		return cmp.Or(a.created.Compare(b.created), a.name.Compare(b.name))
	})
	use := portUse{}
	var holders []claimant
	for _, c := range all {
		i := slices.IndexFunc(holders, func(h claimant) bool { return overlapAny(h.addresses, c.addresses) })
		if i < 0 {
			holders = append(holders, c)
			continue
		}
		use[c.name] = holders[i].name
	}
	return use
}

func overlapAny(a, b []netip.Addr) bool {
	return slices.ContainsFunc(a, func(x netip.Addr) bool {
		return slices.ContainsFunc(b, func(y netip.Addr) bool { return overlap(x, y) })
	})
}
