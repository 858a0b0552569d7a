package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// ruleSection is what a rule is called.
func ruleSection(index int, name string) string {
	if name != "" {
		return name
	}
	return fmt.Sprintf("rule-%d", index+1)
}

// Paths returns the paths through a node, sorted; all of them for the zero Node. The paths
// through a Service or a port are those of the rules that refer to it.
func (g *Graph) Paths(n Node) (out []Path) {
	g.engine.View(func(c *flow.Ctx) {
		g.paths(c, n, func(p Path) { out = append(out, p) })
	})
	if !slices.IsSortedFunc(out, Path.Compare) { // as they are but for what is found by Services
		slices.SortFunc(out, Path.Compare)
	}
	return slices.Compact(out)
}

// paths yields the paths through a node; those through a Service perhaps several times.
func (g *Graph) paths(c *flow.Ctx, n Node, yield func(Path)) {
	switch k := n.key(); k.Kind {
	case object.Kind{}:
		for name := range flow.All(c, g.graph.Gateways) {
			g.paths(c, nodeOf(gatewayKey(name), ""), yield)
		}
	case kind.GatewayClass:
		for name := range flow.Select(c, g.gateways, k.Name.Name).All() {
			g.paths(c, nodeOf(gatewayKey(name), ""), yield)
		}
	case kind.Gateway, kind.ListenerSet:
		for _, l := range g.listenersOf(c, k) {
			if n.Section == "" || n.Section == l.Name() && l.Owner() == k {
				g.pathsOn(c, l, yield)
			}
		}
	default:
		if g.isRoute(k.Kind) {
			g.pathsOfRoute(c, k, func(p Path) {
				if n.Section == "" || n.Section == ruleSection(p.rule, p.name) {
					yield(p)
				}
			})
			return
		}
		for route := range flow.Select(c, g.backends, k).All() {
			g.pathsOfRoute(c, route, func(p Path) {
				g.referents(c, route, p.rule, n.Section != "", func(r Node) {
					if r == n {
						yield(p)
					}
				})
			})
		}
	}
}

// listenersOf returns the listeners of a Gateway, with those of its ListenerSets, or of a
// ListenerSet.
func (g *Graph) listenersOf(c *flow.Ctx, owner object.Key) (out []topology.ListenerKey) {
	gateway := owner.Name
	if owner.Kind == kind.ListenerSet {
		set, ok := flow.Get(c, g.graph.ListenerSets, owner.Name)
		if !ok {
			return nil
		}
		gateway = set.Gateway
	}
	for l := range flow.Select(c, g.listeners, gateway).All() {
		if owner.Kind == kind.Gateway || l.Set() == owner.Name {
			out = append(out, l)
		}
	}
	return out
}

// pathsOn yields the paths over a listener.
func (g *Graph) pathsOn(c *flow.Ctx, l topology.ListenerKey, yield func(Path)) {
	class := g.classOf(c, l.Gateway())
	for at := range flow.Select(c, g.attached, l).All() {
		if o, ok := flow.Get(c, g.inputs.Routes, at.Route); ok {
			pathsTo(class, at, topology.RuleNames(o), yield)
		}
	}
}

func pathsTo(class string, at topology.AttachmentKey, rules []string, yield func(Path)) {
	for i, name := range rules {
		yield(Path{class, at, i, name})
	}
}

// pathsOfRoute yields the paths of a route.
func (g *Graph) pathsOfRoute(c *flow.Ctx, route object.Key, yield func(Path)) {
	o, ok := flow.Get(c, g.inputs.Routes, route)
	if !ok {
		return
	}
	seen := map[topology.ListenerKey]bool{}
	for _, p := range g.graph.Parents(c, route) {
		for l := range p.Attached {
			if !seen[l] {
				seen[l] = true
				pathsTo(g.classOf(c, l.Gateway()), topology.AttachmentKey{Route: route, Listener: l}, topology.RuleNames(o), yield)
			}
		}
	}
}

func (g *Graph) classOf(c *flow.Ctx, gateway object.Name) string {
	gw, ok := flow.Get(c, g.graph.Gateways, gateway)
	if !ok {
		return ""
	}
	return gw.Class
}

func (g *Graph) isRoute(of object.Kind) bool {
	d := g.inputs.Kinds().Of(of)
	return d != nil && d.Family == kind.Route
}

// portSection is what a port of a Service is called: by its name, if it has one.
func portSection(name string, number int32) string {
	if name != "" {
		return name
	}
	return fmt.Sprint(number)
}

// Serving returns the paths that requests for a host take through a node, sorted: on each
// listener those of the routes with the most specific hostname that matches. Which of their
// rules a request meets depends on the rest of it.
func (g *Graph) Serving(n Node, host string) (out []Path) {
	host = strings.ToLower(host)
	g.engine.View(func(c *flow.Ctx) {
		best := map[topology.ListenerKey]string{} // domains
		var all []Path
		g.paths(c, n, func(p Path) {
			all = append(all, p)
			if domain, ok := g.domain(c, p, host); ok && len(domain) > len(best[p.at.Listener]) {
				best[p.at.Listener] = domain
			}
		})
		for _, p := range all {
			if domain, ok := g.domain(c, p, host); ok && domain == best[p.at.Listener] {
				out = append(out, p)
			}
		}
	})
	slices.SortFunc(out, Path.Compare)
	return slices.Compact(out)
}

// domain returns the most specific domain of a path's route that matches a host: exact,
// *.suffix, or * for any. A longer one of those that match one host is more specific.
func (g *Graph) domain(c *flow.Ctx, p Path, host string) (best string, ok bool) {
	a, _ := flow.Get(c, g.graph.Attachments, p.at)
	if a == nil {
		return "", false
	}
	for _, h := range a.Hosts {
		suffix, wild := strings.CutPrefix(h.Domain, "*")
		if (h.Domain == host || wild && len(host) > len(suffix) && strings.HasSuffix(host, suffix)) && len(h.Domain) > len(best) {
			best, ok = h.Domain, true
		}
	}
	return best, ok
}
