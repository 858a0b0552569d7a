package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

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
	return cmp.Or(k.Gateway.Compare(o.Gateway), cmp.Compare(k.Port, o.Port), strings.Compare(k.String(), o.String()))
}

// KeyOfPort names the port of a listener.
func KeyOfPort(l *topology.Listener) PortKey {
	return PortKey{l.Key.Gateway(), l.Port, l.Protocol == gwv1.UDPProtocolType}
}

// Port is what serves on a port, and the hosts of its listeners that have an answer
// without a route.
type Port struct {
	Listener  *ir.Listener
	fallbacks []fallback
	onDemand  []int // the chains that could be, by index, see translate.OnDemand
}

// hop is a token of what the requests pass that come by a Gateway: the Gateway itself, or,
// where Gateways have no UIDs, the process that serves them.
func (p *Pipeline) hop(gw *topology.Gateway) string {
	return fmt.Sprintf("%016x", xxhash.Sum64String(string(gw.Object.UID)+"/"+p.Options.Topology.Instance))
}

// declarePorts declares what a Gateway's ports serve, from its listeners.
func (p *Pipeline) declarePorts() {
	byPort := flow.NewIndex(p.Graph.Listeners,
		func(_ topology.ListenerKey, l *topology.Listener, yield func(PortKey)) {
			// A listener of TLS that can't serve, for want of a certificate for one, keeps
			// its hosts from others nevertheless.
			if l.Serves || !l.Barred && (l.Protocol == gwv1.HTTPSProtocolType || l.Protocol == gwv1.TLSProtocolType) {
				yield(KeyOfPort(l))
			}
		}, topology.ListenerKey.Compare)
	byPort.Also(p.Graph.SetListeners)

	p.declareSockets(byPort)
	p.declarePortFilters(byPort)
	p.declarePortPolicies(byPort)
	forwarding := p.indexForwards()
	p.Ports = flow.Group("ports", byPort,
		func(c *flow.Ctx, k PortKey, members flow.Members[topology.ListenerKey, *topology.Listener]) (*Port, bool) {
			gw, ok := flow.Get(c, p.Graph.Gateways, k.Gateway)
			if !ok || !gw.Served() {
				return nil, false
			}
			all := make([]*topology.Listener, 0, members.Len())
			for _, l := range members.All() {
				all = append(all, l)
			}
			listeners := slices.DeleteFunc(slices.Clone(all), func(l *topology.Listener) bool { return !l.Serves })
			bind, _ := p.Options.Topology.BindPort(k.Port)
			listener := translate.Listener(translate.ListenerInput{
				Gateway: k.Gateway, Port: k.Port, BindPort: bind, Mapped: p.Options.Topology.Provisioned,
				Hop: p.hop(gw), Addresses: p.addressesOf(gw), Client: translate.Client(gw.Parameters.Client, k.Port), Telemetry: translate.Telemetry(k.Gateway, gw.Parameters), Listeners: listeners,
				Forwards: p.forwardsOn(c, forwarding, k, listeners),
			})
			if listener == nil {
				return nil, false
			}
			listener.Filters, _ = flow.Get(c, p.portFilters, k)
			return &Port{listener, fallbacksOf(k.Gateway, all), translate.OnDemand(listener)}, true
		})

	p.RouteTables = flow.Map("route-tables", p.Ports,
		func(_ *flow.Ctx, _ PortKey, v *Port, emit func(ir.TableKey, TableFront)) {
			for _, chain := range v.Listener.Chains {
				if chain.Table == "" {
					continue
				}
				emit(ir.TableOf(v.Listener.Gateway, chain.Table),
					TableFront{port: v.Listener.ClientPort(), https: chain.TLS != nil, filters: v.Listener.Filters})
			}
		}, flow.Equal(flow.Same[TableFront]))
	// Thousands of hosts need not know what it is that a policy in front of them says.
	p.fronts = flow.Map("host-fronts", p.RouteTables,
		func(_ *flow.Ctx, k ir.TableKey, at TableFront, emit func(ir.TableKey, hostFront)) {
			access := accessAround(at.filters)
			emit(k, hostFront{at.port, at.https, access != nil, pathsOf(access)})
		}, flow.Equal(flow.Same[hostFront]))

	p.fallbacks = flow.Map("fallback-host-names", p.Ports,
		func(_ *flow.Ctx, _ PortKey, v *Port, emit func(ir.HostKey, bool)) {
			for _, c := range v.fallbacks {
				emit(c.key, c.misdirected)
			}
		}, flow.Equal(flow.Same[bool]))
}
