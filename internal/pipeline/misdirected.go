package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
	"github.com/gatehouse-dev/gatehouse/internal/translate"
)

// knownHosts is up to how many hostnames of a port with TLS each HTTPS listener tells from
// hosts that nobody has: as many as a Gateway can define by itself. Beyond that every table
// would list every other listener.
const knownHosts = 64

// portHost is a hostname of listeners of a port.
type portHost struct {
	PortKey
	hostname string // as in topology.Listener
}

func (k portHost) String() string { return fmt.Sprintf("%s %q", k.PortKey, k.hostname) }

func (k portHost) compare(o portHost) int {
	return cmp.Or(k.PortKey.compare(o.PortKey), strings.Compare(k.hostname, o.hostname))
}

// ownedHost says which listeners of a port have a hostname.
type ownedHost struct {
	plain, https ir.TableKey // of those that serve; zero for none
	forwards     bool        // one of TLS serves
	tls          bool        // some are of HTTPS or TLS, whether or not they serve
}

// closed reports whether connections to the hostname lead to nothing, since what has it doesn't serve.
func (h ownedHost) closed() bool { return h.tls && !h.forwards && h.https == (ir.TableKey{}) }

// otherHosts is what the HTTPS listeners of a port need to know of each other.
type otherHosts struct {
	all  []string    // all hostnames with TLS, sorted; nil where what is not a table's own is somebody else's
	wide []wideTable // of those for more than one host, sorted
}

type wideTable struct {
	hostname string
	table    ir.TableKey
}

func (a otherHosts) equal(b otherHosts) bool {
	return (a.all == nil) == (b.all == nil) && slices.Equal(a.all, b.all) && slices.Equal(a.wide, b.wide)
}

// declareOwnedHosts declares which listeners have the hostnames of ports.
func (p *Pipeline) declareOwnedHosts() {
	byHost := flow.NewIndex(p.Graph.Listeners,
		func(_ topology.ListenerKey, l *topology.Listener, yield func(portHost)) {
			if keepsHosts(l) {
				yield(portHost{KeyOfPort(l), l.Hostname})
			}
		}, topology.ListenerKey.Compare)
	byHost.Also(p.Graph.SetListeners)
	p.ownedHosts = flow.Group("hosts-of-listeners", byHost,
		func(_ *flow.Ctx, k portHost, members flow.Members[topology.ListenerKey, *topology.Listener]) (ownedHost, bool) {
			var out ownedHost
			for _, l := range members.All() {
				table, _ := translate.RouteTable(k.Gateway, l.Frontend())
				switch l.Protocol {
				case gwv1.HTTPProtocolType:
					out.plain = table
				case gwv1.HTTPSProtocolType:
					if out.tls = true; l.Serves {
						out.https = table
					}
				case gwv1.TLSProtocolType:
					out.tls, out.forwards = true, out.forwards || l.Serves
				case gwv1.TCPProtocolType, gwv1.UDPProtocolType: // no requests, no hosts
				}
			}
			return out, out != ownedHost{}
		}, flow.Equal(flow.Same[ownedHost]))
}

// declareFallbacks declares the hosts that have an answer even without a route: 404 where it is
// the listener's own, and 421 where another listener of the port owns it. Plain HTTP listeners
// share a route table, so each has its hostname there. An HTTPS listener has
// a table to itself, which a client reaches by its server name; a request in it
// for a host of another listener came over the wrong connection, and one for a
// host of none is not found (Listener.hostname in the Gateway API). The hosts of a
// listener that doesn't serve are its own all the same, and so are those of TLS
// listeners, which see no requests.
func (p *Pipeline) declareFallbacks() {
	withTLS := func(k portHost, v ownedHost, yield func(PortKey)) {
		if v.tls {
			yield(k.PortKey)
		}
	}
	count := flow.Count("tls-hosts-of-ports", p.ownedHosts, withTLS)
	all := flow.NewIndex(p.ownedHosts, withTLS, portHost.compare)
	wide := flow.NewIndex(p.ownedHosts, func(k portHost, v ownedHost, yield func(PortKey)) {
		if v.https != (ir.TableKey{}) && (k.hostname == "" || strings.HasPrefix(k.hostname, "*")) {
			yield(k.PortKey)
		}
	}, portHost.compare)
	others := flow.Map("other-hosts", p.portSettings,
		func(c *flow.Ctx, k PortKey, _ *ir.Listener, emit func(PortKey, otherHosts)) {
			var out otherHosts
			for host, v := range flow.Select(c, wide, k).All() {
				out.wide = append(out.wide, wideTable{host.hostname, v.https})
			}
			// Where a listener takes every host that no other has, all others are somebody's.
			if n, _ := flow.Get(c, count, k); n <= knownHosts && (len(out.wide) == 0 || out.wide[0].hostname != "") {
				out.all = []string{}
				for host := range flow.Select(c, all, k).All() {
					out.all = append(out.all, host.hostname)
				}
			}
			emit(k, out)
		}, flow.Equal(otherHosts.equal))

	p.fallbacks = flow.Map("fallback-host-names", p.ownedHosts,
		func(c *flow.Ctx, k portHost, v ownedHost, emit func(ir.HostKey, bool)) {
			others, served := flow.Get(c, others, k.PortKey)
			if !served {
				return
			}
			add := func(table ir.TableKey, hostname string, misdirected bool) {
				emit(ir.HostKey{TableKey: table, Domain: cmp.Or(hostname, "*")}, misdirected)
			}
			for _, own := range []ir.TableKey{v.plain, v.https} {
				if own != (ir.TableKey{}) {
					add(own, k.hostname, false)
				}
			}
			for _, other := range others.all {
				if v.https != (ir.TableKey{}) && other != k.hostname {
					add(v.https, other, true)
				}
			}
			if others.all != nil || !v.tls {
				return
			}
			if v.https != (ir.TableKey{}) && k.hostname != "" {
				add(v.https, "", true)
			}
			// The more specific hostnames within those of a table are not its own.
			for h := k.hostname; len(others.wide) > 0 && h != ""; {
				h = topology.Wider(h)
				i, found := slices.BinarySearchFunc(others.wide, h, func(w wideTable, h string) int { return strings.Compare(w.hostname, h) })
				if found {
					add(others.wide[i].table, k.hostname, true)
				}
			}
		}, flow.Equal(flow.Same[bool]))
}
