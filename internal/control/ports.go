package control

import (
	"fmt"
	"slices"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// portKey names a port of a Gateway: what Envoy calls a listener.
type portKey struct {
	Gateway object.Name
	Port    uint16
	UDP     bool
}

func (k portKey) String() string {
	if k.UDP {
		return fmt.Sprintf("%s:%d/udp", k.Gateway, k.Port)
	}
	return fmt.Sprintf("%s:%d", k.Gateway, k.Port)
}

// keyOfPort names the port of a listener.
func keyOfPort(l *topology.Listener) portKey {
	return portKey{l.Key.Gateway, l.Port, l.Protocol == gwv1.UDPProtocolType}
}

// port is what serves on a port, and the hosts that its listeners claim.
type port struct {
	listener *ir.Listener
	claims   []claim
}

// declarePorts declares what a Gateway's ports serve, from its listeners.
func (p *Pipeline) declarePorts() {
	byPort := flow.NewIndex(p.graph.Listeners,
		func(_ topology.ListenerKey, l *topology.Listener, yield func(portKey)) {
			// A listener of TLS that can't serve, for want of a certificate for one, keeps
			// its hosts from others nevertheless.
			if l.Serves || l.Protocol == gwv1.HTTPSProtocolType || l.Protocol == gwv1.TLSProtocolType {
				yield(keyOfPort(l))
			}
		}, topology.ListenerKey.Compare)
	byPort.Also(p.graph.SetListeners)

	forwarding := p.indexForwards()
	p.ports = flow.Group("ports", byPort,
		func(c *flow.Ctx, k portKey, members flow.Members[topology.ListenerKey, *topology.Listener]) (*port, bool) {
			gw, ok := flow.Get(c, p.graph.Gateways, k.Gateway)
			if !ok || !gw.Served() {
				return nil, false
			}
			all := make([]*topology.Listener, 0, members.Len())
			for _, l := range members.All() {
				all = append(all, l)
			}
			listeners := slices.DeleteFunc(slices.Clone(all), func(l *topology.Listener) bool { return !l.Serves })
			addresses := gw.Addresses
			if len(addresses) == 0 {
				addresses = p.opts.Addresses
			}
			bind, _ := p.opts.Topology.BindPort(k.Port)
			listener := translate.Listener(translate.ListenerInput{
				Gateway: k.Gateway, Port: k.Port, BindPort: bind, Mapped: p.opts.Topology.Provisioned, Addresses: addresses, Client: translate.Client(gw.Parameters.Client), Telemetry: translate.Telemetry(k.Gateway, gw.Parameters), Listeners: listeners,
				Forwards: p.forwardsOn(c, forwarding, k, listeners),
			})
			if listener == nil {
				return nil, false
			}
			return &port{listener, claims(k.Gateway, all)}, true
		})

	p.origins = flow.Map("route-tables", p.ports,
		func(_ *flow.Ctx, _ portKey, v *port, emit func(ir.TableKey, tableOrigin)) {
			for _, chain := range v.listener.Chains {
				if chain.Table == "" {
					continue
				}
				emit(ir.TableKey{Gateway: v.listener.Gateway, Table: chain.Table},
					tableOrigin{port: v.listener.ClientPort(), https: chain.TLS != nil})
			}
		}, flow.Equal(flow.Same[tableOrigin]))

	p.claims = flow.Map("host-claims", p.ports,
		func(_ *flow.Ctx, _ portKey, v *port, emit func(ir.HostKey, bool)) {
			for _, c := range v.claims {
				emit(c.key, c.misdirected)
			}
		}, flow.Equal(flow.Same[bool]))
}
