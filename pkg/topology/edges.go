package topology

import (
	"slices"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/topology"
)

// Children returns the nodes right below a node, sorted: the Gateways of a class, the
// listeners and ListenerSets of a Gateway, the routes that are attached to a listener, the
// rules of a route, the Services that a rule refers to, and objects of declared kinds.
func (g *Graph) Children(n Node) []Node {
	return g.nodes(func(c *flow.Ctx, yield func(Node)) { g.children(c, n, yield) })
}

// Parents returns the nodes right above a node, sorted; those that it refers to and that do
// not exist, too.
func (g *Graph) Parents(n Node) []Node {
	return g.nodes(func(c *flow.Ctx, yield func(Node)) { g.parents(c, n, yield) })
}

// Exists reports whether there is such an object, with such a section.
func (g *Graph) Exists(n Node) (ok bool) {
	g.engine.View(func(c *flow.Ctx) { ok = g.exists(c, n) })
	return ok
}

func (g *Graph) nodes(collect func(*flow.Ctx, func(Node))) (out []Node) {
	g.engine.View(func(c *flow.Ctx) { collect(c, func(n Node) { out = append(out, n) }) })
	slices.SortFunc(out, Node.Compare)
	return slices.Compact(out)
}

func (g *Graph) children(c *flow.Ctx, n Node, yield func(Node)) {
	for key := range flow.Select(c, g.linked, n).All() {
		yield(nodeOf(key, ""))
	}
	switch k := n.key(); {
	case k.Kind == kind.GatewayClass:
		for name := range flow.Select(c, g.gateways, k.Name.Name).All() {
			yield(nodeOf(gatewayKey(name), ""))
		}
	case k.Kind == kind.Gateway || k.Kind == kind.ListenerSet:
		for _, l := range g.listenersOf(c, k) {
			switch owner := l.Owner(); {
			case owner != k && n.Section == "":
				yield(nodeOf(owner, ""))
			case owner == k && n.Section == "":
				yield(n.At(l.Name()))
			case owner == k && n.Section == l.Name():
				for at := range flow.Select(c, g.attached, l).All() {
					yield(nodeOf(at.Route, ""))
				}
			}
		}
	case g.isRoute(k.Kind):
		if o, ok := flow.Get(c, g.inputs.Routes, k); ok {
			for i, name := range topology.RuleNames(o) {
				switch section := ruleSection(i, name); n.Section {
				case "":
					yield(n.At(section))
				case section:
					g.referents(c, k, i, false, yield)
				}
			}
		}
	case k.Kind == kind.Service && n.Section == "":
		if s, ok := flow.Get(c, g.inputs.Services, k.Name); ok {
			for i := range s.Spec.Ports {
				yield(n.At(portSection(s.Spec.Ports[i].Name, s.Spec.Ports[i].Port)))
			}
		}
	}
}

func (g *Graph) parents(c *flow.Ctx, n Node, yield func(Node)) {
	k := n.key()
	if l, ok := flow.Get(c, g.objects, k); ok {
		for _, p := range l.parents {
			yield(p)
		}
		return
	}
	if n.Section != "" {
		yield(n.Object())
		return
	}
	switch {
	case k.Kind == kind.Gateway:
		if gw, ok := flow.Get(c, g.inputs.Gateways, k.Name); ok {
			yield(GatewayClass(string(gw.Spec.GatewayClassName)))
		}
	case k.Kind == kind.ListenerSet:
		if set, ok := flow.Get(c, g.graph.ListenerSets, k.Name); ok {
			yield(nodeOf(gatewayKey(set.Gateway), ""))
		}
	case g.isRoute(k.Kind):
		g.parentsOfRoute(c, k, yield)
	default:
		for route := range flow.Select(c, g.backends, k).All() {
			if o, ok := flow.Get(c, g.inputs.Routes, route); ok {
				for i, name := range topology.RuleNames(o) {
					g.referents(c, route, i, false, func(r Node) {
						if r == n {
							yield(nodeOf(route, ruleSection(i, name)))
						}
					})
				}
			}
		}
	}
}

// parentsOfRoute yields the listeners that a route is attached to, and the Gateways and
// ListenerSets that it names and that do not exist.
func (g *Graph) parentsOfRoute(c *flow.Ctx, route object.Key, yield func(Node)) {
	for _, p := range g.graph.Parents(c, route) {
		for l := range p.Attached {
			yield(nodeOf(l.Owner(), l.Name()))
		}
	}
	o, ok := flow.Get(c, g.inputs.Routes, route)
	if !ok {
		return
	}
	refs := topology.ParentRefs(o)
	for i := range refs {
		of, name := topology.ParentOf(route.Name, &refs[i])
		if n := gatewayAPI(string(of), name.Namespace, name.Name); of != "" && !g.exists(c, n) {
			yield(n)
		}
	}
}

// exists reports whether there is such an object, with such a section.
func (g *Graph) exists(c *flow.Ctx, n Node) bool {
	k := n.key()
	switch {
	case n.Section != "":
		found := false
		g.children(c, n.Object(), func(child Node) { found = found || child == n })
		return found
	case k.Kind == kind.GatewayClass && k.Name.Name == g.implicitClass:
		return true
	case g.others[k.Kind].exists != nil:
		return g.others[k.Kind].exists(c, k)
	default:
		return g.inputs.Exists(c, k)
	}
}

// referents yields what a rule refers to, whether it exists or not.
func (g *Graph) referents(c *flow.Ctx, route object.Key, rule int, ports bool, yield func(Node)) {
	if r, ok := flow.Get(c, g.graph.Routes, route); ok && rule < len(r.Rules) {
		referents(r, rule, ports, yield)
	}
}

// referents yields what a rule of a route refers to: objects, or ports of Services that can
// be used. What a rule may not refer to is left out.
func referents(r *topology.Route, rule int, ports bool, yield func(Node)) {
	for i, ref := range r.Rules[rule].Backends {
		if ref.Backend.IsZero() {
			permitted := ref.Problem == nil || ref.Problem.Reason != string(gwv1.RouteReasonRefNotPermitted)
			if named := topology.BackendRefOf(r.Object, rule, i); named != nil && permitted && !ports {
				yield(backendNode(r.Key.Namespace, named))
			}
			continue
		}
		b := ref.Backend.Backend()
		n := nodeOf(b.Object, "")
		if ports && b.Object.Kind == kind.Service {
			n.Section = portSection(b.PortName, b.Port)
		}
		yield(n)
	}
}

// backendNode returns what a reference in a namespace names.
func backendNode(namespace string, ref *gwv1.BackendObjectReference) Node {
	n := Service(namespace, string(ref.Name))
	if ref.Group != nil {
		n.Group = string(*ref.Group)
	}
	if ref.Kind != nil {
		n.Kind = string(*ref.Kind)
	}
	if ref.Namespace != nil {
		n.Namespace = string(*ref.Namespace)
	}
	return n
}
