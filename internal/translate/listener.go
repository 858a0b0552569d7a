package translate

import (
	"slices"
	"strconv"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// ListenerInput is what a port of a Gateway is made of.
type ListenerInput struct {
	Gateway  object.Name
	Port     uint16 // as the Gateway says
	BindPort uint16 // where it is bound; 0 where that is no port
	// Mapped says that a Service leads clients from Port to BindPort.
	Mapped    bool
	Hop       string
	Addresses []string // IP addresses to bind, at least one
	Client    ir.Client
	Telemetry ir.Telemetry
	// Listeners are those of the port that serve, in any order. They are of one
	// protocol family: others on the port are in conflict.
	Listeners []*topology.Listener
	// Forwards are the routes on those of them that have no requests, in any order.
	Forwards []ForwardEntry
}

// Listener merges the listeners of a port. It is nil where there are none, or
// where there is nowhere to bind it.
func Listener(in ListenerInput) *ir.Listener {
	if len(in.Listeners) == 0 || in.BindPort == 0 {
		return nil
	}
	l := &ir.Listener{
		Gateway:   in.Gateway,
		Name:      ListenerName(in.Listeners[0]),
		UDP:       in.Listeners[0].Protocol == gwv1.UDPProtocolType,
		TLS:       encrypted(in.Listeners[0]),
		Port:      in.Port,
		BindPort:  in.BindPort,
		Mapped:    in.Mapped,
		Hop:       in.Hop,
		Addresses: slices.Compact(slices.Sorted(slices.Values(in.Addresses))),
		Client:    in.Client,
		Telemetry: in.Telemetry,
	}
	sorted := slices.SortedFunc(slices.Values(in.Listeners), func(a, b *topology.Listener) int {
		return a.Key.Compare(b.Key)
	})
	routes := map[topology.ListenerKey][]*ForwardEntry{}
	for i := range in.Forwards {
		e := &in.Forwards[i]
		routes[e.Listener] = append(routes[e.Listener], e)
	}
	seen := make(map[string]bool, len(sorted))
	for _, node := range sorted {
		for _, c := range chains(node, routes[node.Key]) {
			if !seen[c.Hostname] {
				seen[c.Hostname] = true
				l.Chains = append(l.Chains, c)
			}
		}
	}
	slices.SortFunc(l.Chains, func(a, b ir.Chain) int { return strings.Compare(a.Hostname, b.Hostname) })
	return l
}

// ListenerName is the name of the ir.Listener that serves a listener.
func ListenerName(l *topology.Listener) string {
	family := "http-"
	switch {
	case encrypted(l):
		family = "tls-"
	case l.Protocol == gwv1.TCPProtocolType:
		family = "tcp-"
	case l.Protocol == gwv1.UDPProtocolType:
		family = "udp-"
	}
	return family + strconv.Itoa(int(l.Port))
}

// chains makes what connections to a listener meet. Hostnames of plain HTTP are the
// route table's work, where all listeners of the port share one.
func chains(l *topology.Listener, routes []*ForwardEntry) []ir.Chain {
	table, ok := RouteTable(l.Key.Gateway(), l.Frontend())
	switch {
	case !ok:
		return forwards(l, routes)
	case !encrypted(l):
		return []ir.Chain{{Table: table.Table()}}
	default:
		return []ir.Chain{{Hostname: l.Hostname, Table: table.Table(), HTTP3: l.HTTP3, TLS: terminated(l)}}
	}
}

// terminated says how a listener terminates TLS; nil where it doesn't.
func terminated(l *topology.Listener) *ir.TLS {
	if !encrypted(l) || l.Passthrough {
		return nil
	}
	t := &ir.TLS{Certificates: make([]ir.SecretKey, len(l.Certificates)), MinVersion: l.MinTLSVersion}
	for i, name := range l.Certificates {
		t.Certificates[i] = ir.Certificate(name)
	}
	if l.Clients != nil {
		t.Clients = &ir.Clients{Authorities: ir.Authorities(l.Clients.Authorities...), Fallback: l.Clients.Fallback}
	}
	return t
}

func encrypted(l *topology.Listener) bool {
	return l.Protocol == gwv1.HTTPSProtocolType || l.Protocol == gwv1.TLSProtocolType
}
