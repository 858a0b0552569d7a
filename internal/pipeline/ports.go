package pipeline

import (
	"cmp"
	"fmt"

	"github.com/cespare/xxhash/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// PortKey names a port of a Gateway: what Envoy calls a listener.
type PortKey struct {
	Gateway object.Name
	Port    uint16
	UDP     bool
}

func (k PortKey) String() string {
	if k.UDP {
		return fmt.Sprintf("%s:%d/udp", k.Gateway, k.Port)
	}
	return fmt.Sprintf("%s:%d", k.Gateway, k.Port)
}

func (k PortKey) compare(o PortKey) int {
	udp := 0
	if k.UDP != o.UDP {
		if udp = -1; k.UDP {
			udp = 1
		}
	}
	return cmp.Or(k.Gateway.Compare(o.Gateway), cmp.Compare(k.Port, o.Port), udp)
}

// KeyOfPort names the port of a listener.
func KeyOfPort(l *topology.Listener) PortKey {
	return PortKey{l.Key.Fleet(), l.Port, l.Protocol == gwv1.UDPProtocolType}
}

// hop is a token of what the requests pass that come by a Gateway: the Gateway itself or the fleet that it
// shares, or, where Gateways have no UIDs, the process that serves them.
func (p *Pipeline) hop(gw *topology.Gateway) string {
	id := string(gw.Object.UID)
	if gw.SharesFleet() {
		id = gw.Fleet.String()
	}
	return fmt.Sprintf("%016x", xxhash.Sum64String(id+"/"+p.Options.Topology.Instance))
}

// keepsHosts reports whether a listener keeps its hosts from others of its port. One that can't serve,
// for want of a certificate or since its Gateway on a shared fleet is refused, does so nevertheless.
func keepsHosts(l *topology.Listener) bool {
	switch {
	case l.Serves:
		return true
	case l.Barred:
		return false
	case l.Protocol == gwv1.HTTPProtocolType:
		accepted, _ := condition.Find(l.Conditions, string(gwv1.ListenerConditionAccepted))
		return accepted.Status == metav1.ConditionTrue
	default:
		return l.Protocol == gwv1.HTTPSProtocolType || l.Protocol == gwv1.TLSProtocolType
	}
}

// servedPort is a port with the family of the listeners that serve there.
type servedPort struct {
	PortKey
	family translate.Family
}

func (k servedPort) String() string { return fmt.Sprintf("%s %s", k.PortKey, k.family) }

func (k servedPort) compare(o servedPort) int {
	return cmp.Or(k.PortKey.compare(o.PortKey), cmp.Compare(k.family, o.family))
}

// tableChain is a chain of a port that leads to a route table.
type tableChain struct {
	port  PortKey
	chain ir.Chain
}

// declarePorts declares what listeners of a Gateway serve on its ports. What follows from one of them is
// a row of its own, and a port knows of the sum of them only what it needs: thousands of listeners
// share a port, and one more costs nothing of what the others do.
func (p *Pipeline) declarePorts() {
	served := flow.Keys("served-ports", func(_ topology.ListenerKey, l *topology.Listener, yield func(servedPort)) {
		if l.Serves {
			yield(servedPort{KeyOfPort(l), translate.FamilyOf(l)})
		}
	}, p.Graph.Listeners, p.Graph.SetListeners)
	p.portSettings = flow.Group("port-settings",
		flow.NewIndex(served, func(k servedPort, _ struct{}, yield func(PortKey)) { yield(k.PortKey) }, servedPort.compare),
		func(c *flow.Ctx, k PortKey, members flow.Members[servedPort, struct{}]) (*ir.Listener, bool) {
			gw, ok := flow.Get(c, p.Graph.Fleets, k.Gateway)
			if !ok || !gw.Served() {
				return nil, false
			}
			first, _ := members.At(0) // listeners of another family are in conflict
			bind, _ := p.Options.Topology.BindPort(k.Port)
			listener := translate.Listener(translate.ListenerInput{
				Gateway: k.Gateway, Family: first.family, Port: k.Port, BindPort: bind, Mapped: p.Options.Topology.Provisioned,
				Hop: p.hop(gw), Addresses: p.addressesOf(gw), Client: translate.Client(gw.Parameters.Client, k.Port),
				Telemetry: translate.Telemetry(k.Gateway, gw.Parameters),
			})
			return listener, listener != nil
		})
	p.declareSockets()
	p.declarePortFilters()
	p.declareTableChains()
	p.declareOwnedHosts()
	p.declareForwardChains()
	p.declareFallbacks()
}

// declareTableChains declares the chains whose requests are read, and the tables that they lead to.
func (p *Pipeline) declareTableChains() {
	byTable := flow.NewIndex(p.Graph.Listeners,
		func(k topology.ListenerKey, l *topology.Listener, yield func(ir.TableKey)) {
			if table, ok := translate.RouteTable(k.Fleet(), l.Frontend()); ok && l.Serves {
				yield(table)
			}
		}, topology.ListenerKey.Compare)
	byTable.Also(p.Graph.SetListeners)
	p.tableChains = flow.Group("chains-with-tables", byTable,
		func(_ *flow.Ctx, _ ir.TableKey, members flow.Members[topology.ListenerKey, *topology.Listener]) (tableChain, bool) {
			_, l := members.At(0) // those of plain HTTP share a table, and a chain
			chain, ok := translate.Chain(l)
			return tableChain{KeyOfPort(l), chain}, ok
		})
	p.RouteTables = flow.Map("route-tables", p.tableChains,
		func(c *flow.Ctx, k ir.TableKey, v tableChain, emit func(ir.TableKey, TableFront)) {
			if l, ok := flow.Get(c, p.portSettings, v.port); ok {
				filters, _ := flow.Get(c, p.portFilters, v.port)
				emit(k, TableFront{
					at: v.port, port: l.ClientPort(), https: v.chain.TLS != nil, verified: v.chain.TLS.Verifies(), filters: filters,
				})
			}
		}, flow.Equal(flow.Same[TableFront]))
	prerouting := p.indexPrerouting()
	// Thousands of hosts need not know what it is that a policy in front of them says.
	p.fronts = flow.Map("host-fronts", p.RouteTables,
		func(c *flow.Ctx, k ir.TableKey, at TableFront, emit func(ir.TableKey, hostFront)) {
			access := accessAround(at.filters)
			emit(k, hostFront{
				port: at.port, https: at.https, guarded: access != nil, traffic: at.filters != nil && at.filters.Traffic != nil,
				verified: at.verified, login: pathsOf(access), prerouting: flow.Select(c, prerouting, k).Len() > 0,
			})
		}, flow.Equal(flow.Same[hostFront]))
}

// declareServing declares what proxies are sent as a listener: the port with all chains that it
// lists.
func (p *Pipeline) declareServing() {
	listed := flow.NewIndex(p.listedChains,
		func(_ ir.TableKey, v tableChain, yield func(PortKey)) { yield(v.port) }, ir.TableKey.Compare)
	p.Ports = flow.Map("ports", p.portSettings,
		func(c *flow.Ctx, k PortKey, l *ir.Listener, emit func(PortKey, *ir.Listener)) {
			members := flow.Select(c, listed, k)
			forwards, _ := flow.Get(c, p.forwardChains, k)
			chains := make([]ir.Chain, 0, members.Len()+len(forwards)+1)
			for _, v := range members.All() {
				chains = append(chains, v.chain)
			}
			chains = append(chains, forwards...)
			if on, _ := flow.Get(c, p.OnDemand, k); on {
				clients, _ := flow.Get(c, p.onDemandClients, k)
				chains = append(chains, translate.OnDemand(clients.orNil()))
			}
			out := translate.Serving(l, chains)
			out.Filters, _ = flow.Get(c, p.portFilters, k)
			emit(k, out)
		})
}
