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

// ListenerInput is what a port of a Gateway is made of, its chains aside.
type ListenerInput struct {
	Gateway  object.Name
	Family   Family
	Port     uint16 // as the Gateway says
	BindPort uint16 // where it is bound; 0 where that is no port
	// Mapped says that a Service leads clients from Port to BindPort.
	Mapped    bool
	Hop       string
	Addresses []string // IP addresses to bind, at least one
	Client    ir.Client
	Telemetry ir.Telemetry
}

// Listener makes the listener of a port, without chains. It is nil where there is nowhere to
// bind it.
func Listener(in ListenerInput) *ir.Listener {
	if in.BindPort == 0 {
		return nil
	}
	return &ir.Listener{
		Gateway:   in.Gateway,
		Name:      in.Family.name(in.Port),
		UDP:       in.Family == datagrams,
		TLS:       in.Family == overTLS,
		Port:      in.Port,
		BindPort:  in.BindPort,
		Mapped:    in.Mapped,
		Hop:       in.Hop,
		Addresses: slices.Compact(slices.Sorted(slices.Values(in.Addresses))),
		Client:    in.Client,
		Telemetry: in.Telemetry,
	}
}

// Serving returns the listener with chains, which are in any order. Of two for a hostname the first
// serves: listeners in conflict don't get so far.
func Serving(l *ir.Listener, chains []ir.Chain) *ir.Listener {
	out := *l
	out.Chains = slices.Clone(chains)
	slices.SortStableFunc(out.Chains, func(a, b ir.Chain) int { return strings.Compare(a.Hostname, b.Hostname) })
	out.Chains = slices.CompactFunc(out.Chains, func(a, b ir.Chain) bool { return a.Hostname == b.Hostname })
	return &out
}

// Family is what all listeners that serve on a port have in common.
type Family string

const (
	overTLS   Family = "tls"
	datagrams Family = "udp"
)

// FamilyOf returns the family of a listener.
func FamilyOf(l *topology.Listener) Family {
	switch {
	case encrypted(l):
		return overTLS
	case l.Protocol == gwv1.TCPProtocolType:
		return "tcp"
	case l.Protocol == gwv1.UDPProtocolType:
		return datagrams
	default:
		return "http"
	}
}

func (f Family) name(port uint16) string { return string(f) + "-" + strconv.Itoa(int(port)) }

// ListenerName is the name of the ir.Listener that serves a listener.
func ListenerName(l *topology.Listener) string { return FamilyOf(l).name(l.Port) }

// Chain makes what connections to a listener meet whose requests are read. Hostnames of plain
// HTTP are the route table's work, where all listeners of the port share one. It reports false for
// protocols without requests, see Forwards.
func Chain(l *topology.Listener) (ir.Chain, bool) {
	table, ok := RouteTable(l.Key.Fleet(), l.Frontend())
	switch {
	case !ok:
		return ir.Chain{}, false
	case !encrypted(l):
		return ir.Chain{Table: table.Table()}, true
	default:
		return ir.Chain{Hostname: l.Hostname, Table: table.Table(), HTTP3: l.HTTP3, TLS: terminated(l)}, true
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
