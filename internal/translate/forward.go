package translate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// forward translates a rule of a TLSRoute, TCPRoute or UDPRoute, which takes all
// that comes to it. The API allows a route one rule; others would never be reached.
func (t *translation) forward(index int, name *gwv1.SectionName, list []gwv1.BackendRef, refs topology.RouteRule) {
	t.begin(index, name)
	at := inRule(index)
	if index > 0 {
		f := at.field("")
		t.refuse(f, condition.RouteUnsupportedValue(f, "a "+t.key.Kind.Name()+" has one rule, and the first takes everything; put this one into a route of its own"))
		return
	}
	backends := t.plainBackends(at, list, refs.Backends)
	if t.invalid {
		backends = nil
	}
	t.rules = append(t.rules, &ir.Rule{
		Source:   t.source(0),
		Backends: backends,
	})
}

// plainBackends translates backendRefs without filters; nil where nothing can reach
// any. A reference that can't be used keeps its share.
func (t *translation) plainBackends(at position, list []gwv1.BackendRef, refs []topology.BackendRef) []ir.WeightedBackend {
	out := make([]ir.WeightedBackend, 0, len(list))
	var total int64
	usable := false
	for i := range list {
		b := ir.WeightedBackend{Weight: t.weight(at.inBackend(i), list[i].Weight)}
		if i < len(refs) && !refs[i].Backend.IsZero() {
			b.Backend = refs[i].Backend
		}
		if b.Weight == 0 {
			continue
		}
		total += int64(b.Weight)
		usable = usable || !b.Backend.IsZero()
		out = append(out, b)
	}
	if total > math.MaxUint32 {
		f := at.field("backendRefs")
		t.refuse(f, condition.RouteUnsupportedValue(f, fmt.Sprintf("the weights add up to %d; make them at most %d together", total, uint32(math.MaxUint32))))
	}
	if !usable {
		return nil
	}
	return out
}

// ForwardEntry is a route on a listener that has no requests.
type ForwardEntry struct {
	Listener topology.ListenerKey
	Route    object.Key
	Hosts    []topology.AttachedHost
	Created  time.Time
	Rules    []*ir.Rule // as Route gives them
}

// Forwards makes the chains of the listeners of a port that have no requests, with the routes on
// them. Both are in any order. The closed hosts are those of listeners that don't serve:
// a chain for connections to wider hosts must not get theirs.
func Forwards(listeners []*topology.Listener, entries []ForwardEntry, closed []string) []ir.Chain {
	routes := map[topology.ListenerKey][]*ForwardEntry{}
	for i := range entries {
		e := &entries[i]
		routes[e.Listener] = append(routes[e.Listener], e)
	}
	var out []ir.Chain
	for _, l := range slices.SortedFunc(slices.Values(listeners), func(a, b *topology.Listener) int { return a.Key.Compare(b.Key) }) {
		out = append(out, forwards(l, routes[l.Key])...)
	}
	names := map[string]bool{}
	for i := range out {
		names[out[i].Hostname] = true
	}
	for _, hostname := range closed {
		if withinOne(hostname, names) {
			out = append(out, ir.Chain{Hostname: hostname, Forward: &ir.Forward{}})
		}
	}
	return out
}

// withinOne reports whether a wider name than a hostname is among names.
func withinOne(hostname string, names map[string]bool) bool {
	for hostname != "" {
		if hostname = topology.Wider(hostname); names[hostname] {
			return true
		}
	}
	return false
}

// forwards makes the chains of a listener that has no requests: one for each
// host of its routes, and one for its own hostname. Where a host has no route,
// connections are closed: they must not fall through to a listener that is less
// specific.
func forwards(l *topology.Listener, routes []*ForwardEntry) []ir.Chain {
	winners := map[string]*forwardCandidate{l.Hostname: nil}
	for _, e := range routes {
		for _, h := range e.Hosts {
			hostname := h.Domain
			if hostname == "*" {
				hostname = ""
			}
			c := &forwardCandidate{hostname: h.Hostname, entry: e}
			if was := winners[hostname]; was == nil || c.before(was) {
				winners[hostname] = c
			}
		}
	}
	chains := make([]ir.Chain, 0, len(winners))
	for hostname, c := range winners {
		forward := &ir.Forward{}
		if l.Protocol == gwv1.UDPProtocolType {
			forward.Pool = ir.Pool(l.Port)
		}
		if c != nil && len(c.entry.Rules) > 0 {
			rule := c.entry.Rules[0]
			forward.Source, forward.Backends = rule.Source, rule.Backends
			if l.Protocol == gwv1.TLSProtocolType && terminated(l) == nil {
				forward.Backends = inClear(rule.Backends)
			}
		}
		chains = append(chains, ir.Chain{Hostname: hostname, TLS: terminated(l), Forward: forward})
	}
	slices.SortFunc(chains, func(a, b ir.Chain) int { return strings.Compare(a.Hostname, b.Hostname) })
	return chains
}

// inClear returns backends as they are for connections that are passed through with
// the client's own TLS, to which none is added.
func inClear(backends []ir.WeightedBackend) []ir.WeightedBackend {
	out := slices.Clone(backends)
	for i := range out {
		out[i].Backend = out[i].Backend.InClear()
	}
	return out
}

// forwardCandidate is a route that asks for the connections to a host.
type forwardCandidate struct {
	hostname string // the route's own, which led to the host
	entry    *ForwardEntry
}

// before reports whether a route has a host rather than another: the one with the
// more specific hostname of its own, then the older one, then the first by
// "{namespace}/{name}". The others stay attached without getting anything.
func (c *forwardCandidate) before(o *forwardCandidate) bool {
	return cmp.Or(
		cmp.Compare(rank(o.hostname, &ir.Match{}), rank(c.hostname, &ir.Match{})),
		c.entry.Created.Compare(o.entry.Created),
		strings.Compare(c.entry.Route.Name.String(), o.entry.Route.Name.String()),
	) < 0
}
