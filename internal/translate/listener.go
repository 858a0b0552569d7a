package translate

import (
	"math"
	"slices"
	"strconv"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// ListenerInput is what a port of a Gateway is made of.
type ListenerInput struct {
	Gateway   ir.Name
	Port      uint16   // as the Gateway says
	Offset    int      // added to it for binding
	Addresses []string // IP addresses to bind, at least one
	Client    ir.Client
	// Listeners are those of the port that serve, in any order. They are of one
	// protocol family: others on the port are in conflict.
	Listeners []*topology.Listener
}

// Listener merges the listeners of a port. It is nil where there are none, or
// where the shifted port is none.
func Listener(in ListenerInput) *ir.Listener {
	bind := int(in.Port) + in.Offset
	if len(in.Listeners) == 0 || bind < 1 || bind > math.MaxUint16 {
		return nil
	}
	l := &ir.Listener{
		Gateway:   in.Gateway,
		Name:      ListenerName(in.Listeners[0]),
		Port:      in.Port,
		BindPort:  uint16(bind),
		Addresses: slices.Compact(slices.Sorted(slices.Values(in.Addresses))),
		Client:    in.Client,
	}
	sorted := slices.SortedFunc(slices.Values(in.Listeners), func(a, b *topology.Listener) int {
		return a.Key.Compare(b.Key)
	})
	seen := make(map[string]bool, len(sorted))
	for _, node := range sorted {
		if c := chain(node); !seen[c.Hostname] {
			seen[c.Hostname] = true
			l.Chains = append(l.Chains, c)
		}
	}
	slices.SortFunc(l.Chains, func(a, b ir.Chain) int { return strings.Compare(a.Hostname, b.Hostname) })
	return l
}

// ListenerName is the name of the ir.Listener that serves a listener.
func ListenerName(l *topology.Listener) string {
	family := "http-"
	if encrypted(l) {
		family = "tls-"
	}
	return family + strconv.Itoa(int(l.Port))
}

// chain makes what a connection meets. Hostnames of plain HTTP are the route
// table's work, where all listeners of the port share one.
func chain(l *topology.Listener) ir.Chain {
	if !encrypted(l) {
		return ir.Chain{Table: l.Table}
	}
	c := ir.Chain{Hostname: l.Hostname, Table: l.Table, HTTP3: l.HTTP3, TLS: &ir.TLS{
		Certificates: make([]string, len(l.Certificates)), MinVersion: l.MinTLSVersion,
	}}
	for i, name := range l.Certificates {
		c.TLS.Certificates[i] = name.String()
	}
	return c
}

func encrypted(l *topology.Listener) bool { return l.Protocol == gwv1.HTTPSProtocolType }
