package pipeline

import (
	"cmp"
	"slices"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// fallback is a host that has an answer even without a route: 404 where it is the
// listener's own, 421 where another listener of the port owns it.
type fallback struct {
	key         ir.HostKey
	misdirected bool
}

// knownHosts is up to how many HTTPS listeners of a port each of them tells the
// hosts of the others from hosts that nobody has: as many as a Gateway can define
// by itself. Beyond that every table would list every other listener.
const knownHosts = 64

// fallbacksOf lists the hosts that have an answer without a route, of the listeners of
// one port. Plain HTTP listeners
// share a route table, so each has its hostname there. An HTTPS listener has
// a table to itself, which a client reaches by its server name; a request in it
// for a host of another listener came over the wrong connection, and one for a
// host of none is not found (Listener.hostname in the Gateway API). The hosts of a
// listener that doesn't serve are its own all the same, and so are those of TLS
// listeners, which see no requests.
func fallbacksOf(gateway object.Name, listeners []*topology.Listener) []fallback {
	var out []fallback
	seen := map[ir.HostKey]bool{}
	add := func(table ir.TableKey, hostname string, misdirected bool) {
		k := ir.HostKey{TableKey: table, Domain: cmp.Or(hostname, "*")}
		if !seen[k] {
			seen[k] = true
			out = append(out, fallback{k, misdirected})
		}
	}
	tableOf := func(l *topology.Listener) ir.TableKey {
		table, _ := translate.RouteTable(gateway, l.Frontend())
		return table
	}
	var https, others []*topology.Listener
	tables := map[string]ir.TableKey{} // of HTTPS listeners that serve, by hostname
	for _, l := range listeners {
		switch l.Protocol {
		case gwv1.HTTPSProtocolType:
			if !l.Serves {
				others = append(others, l)
				continue
			}
			https = append(https, l)
			tables[l.Hostname] = tableOf(l)
			add(tables[l.Hostname], l.Hostname, false)
		case gwv1.HTTPProtocolType:
			add(tableOf(l), l.Hostname, false)
		case gwv1.TLSProtocolType:
			others = append(others, l)
		case gwv1.TCPProtocolType, gwv1.UDPProtocolType: // no requests, no hosts
		}
	}
	if _, all := tables[""]; !all && len(https)+len(others) <= knownHosts {
		for _, l := range https {
			for _, other := range slices.Concat(https, others) {
				if other.Hostname != l.Hostname {
					add(tables[l.Hostname], other.Hostname, true)
				}
			}
		}
		return out
	}
	// Either a listener takes every host that no other has, or there are too many:
	// whatever is not a table's own is somebody else's. What remains to be listed are
	// the more specific hostnames within a table's.
	for _, l := range slices.Concat(https, others) {
		for p := l.Hostname; p != ""; {
			p = topology.Wider(p)
			if table, ok := tables[p]; ok {
				add(table, l.Hostname, true)
			}
		}
	}
	for _, l := range https {
		add(tables[l.Hostname], "", true)
	}
	return out
}
