package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Drawing is a part of the graph to be looked at.
type Drawing struct {
	Nodes []DrawnNode `json:"nodes"` // sorted
	Edges []Edge      `json:"edges"` // sorted
}

// DrawnNode is a node of a drawing.
type DrawnNode struct {
	Node
	// Missing says that something refers to the node, and that it does not exist.
	Missing bool `json:"missing,omitempty"`
	// Policy says that the node is a policy.
	Policy bool `json:"policy,omitempty"`
	// State is what there is to say of the node; empty for nothing.
	State string `json:"state,omitempty"`
}

// Edge leads from a node to one below it, or from a policy to its target.
type Edge struct {
	From Node `json:"from"`
	To   Node `json:"to"`
}

// Draw returns nodes with what is above and below them, and the policies on all of these;
// everything for no nodes. Above and below a policy is what is so of its targets.
func (g *Graph) Draw(focus ...Node) Drawing {
	d := &drawer{g: g, nodes: map[Node]DrawnNode{}, edges: map[Edge]bool{}}
	g.engine.View(func(c *flow.Ctx) {
		d.c = c
		draw := func(n Node) {
			d.below(n)
			d.above(n)
		}
		for _, n := range focus {
			if !d.targets(n, draw) {
				draw(n)
			}
		}
		if len(focus) == 0 {
			g.each(c, draw)
		}
		d.policies(len(focus) == 0)
	})
	return d.drawing()
}

// each yields all objects but policies. Of Services there are those that are referred to.
func (g *Graph) each(c *flow.Ctx, yield func(Node)) {
	for _, of := range []object.Kind{kind.GatewayClass, kind.Gateway, kind.ListenerSet} {
		g.inputs.Each(c, of, func(name object.Name) { yield(nodeOf(object.Key{Kind: of, Name: name}, "")) })
	}
	for k := range flow.All(c, g.inputs.Routes) {
		yield(nodeOf(k, ""))
	}
	for k := range flow.All(c, g.objects) {
		yield(nodeOf(k, ""))
	}
}

// drawer collects nodes and edges.
type drawer struct {
	g     *Graph
	c     *flow.Ctx
	nodes map[Node]DrawnNode
	edges map[Edge]bool
}

// below draws a node and what is below it.
func (d *drawer) below(n Node) {
	if d.add(n) {
		d.g.children(d.c, n, func(child Node) {
			d.edges[Edge{n, child}] = true
			d.below(child)
		})
	}
}

// above draws what is above a node.
func (d *drawer) above(n Node) {
	d.g.parents(d.c, n, func(parent Node) {
		if e := (Edge{parent, n}); !d.edges[e] {
			d.edges[e] = true
			d.add(parent)
			d.above(parent)
		}
	})
}

// add draws a node; false if it is drawn already.
func (d *drawer) add(n Node) bool {
	if _, drawn := d.nodes[n]; drawn {
		return false
	}
	d.nodes[n] = DrawnNode{Node: n, Missing: !d.g.exists(d.c, n)}
	return true
}

// policies draws the policies on what is drawn, or all of them.
func (d *drawer) policies(all bool) {
	for _, each := range d.g.policies {
		each(d.c, func(policy, target Node) {
			if _, drawn := d.nodes[target]; !drawn && !all {
				return
			}
			d.add(target)
			d.nodes[policy] = DrawnNode{Node: policy, Policy: true}
			d.edges[Edge{policy, target}] = true
		})
	}
}

// targets draws a policy's targets; false for what is no policy, or has none.
func (d *drawer) targets(n Node, draw func(Node)) (ok bool) {
	for _, each := range d.g.policies {
		each(d.c, func(policy, target Node) {
			if policy == n {
				ok = true
				draw(target)
			}
		})
	}
	return ok
}

// drawing sorts what is drawn.
func (d *drawer) drawing() Drawing {
	out := Drawing{slices.Collect(maps.Values(d.nodes)), slices.Collect(maps.Keys(d.edges))}
	out.Sort()
	return out
}

// Sort puts nodes and edges into their order, where some have been added.
func (d *Drawing) Sort() {
	slices.SortFunc(d.Nodes, func(a, b DrawnNode) int { return a.Node.Compare(b.Node) })
	slices.SortFunc(d.Edges, func(a, b Edge) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
}

// DOT writes the drawing for Graphviz.
func (d Drawing) DOT() string {
	var out strings.Builder
	out.WriteString("digraph topology {\n  rankdir=LR\n  node [shape=box]\n")
	for _, n := range d.Nodes {
		style := ""
		switch {
		case n.Missing:
			style = ", style=dashed"
		case n.Policy:
			style = ", shape=note"
		}
		fmt.Fprintf(&out, "  %q [label=%q%s]\n", n.id(), n.label("\n"), style)
	}
	for _, e := range d.Edges {
		fmt.Fprintf(&out, "  %q -> %q\n", e.From.id(), e.To.id())
	}
	out.WriteString("}\n")
	return out.String()
}

// Mermaid writes the drawing as a flowchart of Mermaid.
func (d Drawing) Mermaid() string {
	var out strings.Builder
	out.WriteString("flowchart LR\n")
	place := map[Node]int{}
	for i, n := range d.Nodes {
		place[n.Node] = i
		open, end := "[", "]"
		switch {
		case n.Missing:
			open, end = "{{", "}}"
		case n.Policy:
			open, end = "([", "])"
		}
		fmt.Fprintf(&out, "  n%d%s\"%s\"%s\n", i, open, n.label("<br>"), end)
	}
	for _, e := range d.Edges {
		fmt.Fprintf(&out, "  n%d --> n%d\n", place[e.From], place[e.To])
	}
	return out.String()
}

// Tree writes the drawing for people: each node below the one above it, with the policies on
// it. What is below several nodes is written once, and named elsewhere.
func (d Drawing) Tree() string {
	t := &tree{below: map[Node][]Node{}, on: map[Node][]Node{}, nodes: map[Node]DrawnNode{}, written: map[Node]bool{}}
	hasParent := map[Node]bool{}
	for _, n := range d.Nodes {
		t.nodes[n.Node] = n
	}
	for _, e := range d.Edges {
		if t.nodes[e.From].Policy {
			t.on[e.To] = append(t.on[e.To], e.From)
		} else {
			t.below[e.From] = append(t.below[e.From], e.To)
			hasParent[e.To] = true
		}
	}
	for _, n := range d.Nodes {
		if !n.Policy && !hasParent[n.Node] {
			t.write(n.Node, n.String(), "")
		}
	}
	return t.out.String()
}

// tree is a drawing while it is written.
type tree struct {
	below, on map[Node][]Node
	nodes     map[Node]DrawnNode
	written   map[Node]bool
	out       strings.Builder
}

// write writes a line that ends with a node, and what is below it behind rest.
func (t *tree) write(n Node, line, rest string) {
	t.out.WriteString(line)
	if t.nodes[n].Missing {
		t.out.WriteString(" (missing)")
	}
	if state := t.nodes[n].State; state != "" {
		t.out.WriteString(" (" + state + ")")
	}
	for _, p := range t.on[n] {
		t.out.WriteString("  <- " + p.String())
	}
	if t.written[n] && len(t.below[n]) > 0 {
		t.out.WriteString(" (see above)\n")
		return
	}
	t.written[n] = true
	t.out.WriteString("\n")
	for i, child := range t.below[n] {
		name := child.String()
		if child.Object() == n {
			name = child.sectionWord() + " " + child.Section
		}
		if i < len(t.below[n])-1 {
			t.write(child, rest+"├─ "+name, rest+"│  ")
		} else {
			t.write(child, rest+"└─ "+name, rest+"   ")
		}
	}
}

// id names the node as locators of policies do: gateway.gateway.networking.k8s.io:ns/gw#http.
func (n Node) id() string {
	id := strings.ToLower(schema.GroupKind{Group: n.Group, Kind: n.Kind}.String()) + ":"
	if n.Namespace != "" {
		id += n.Namespace + "/"
	}
	id += n.Name
	if n.Section != "" {
		id += "#" + n.Section
	}
	return id
}

// label is what the node is called in a drawing. Names of objects and sections have no
// characters that would have to be escaped.
func (n Node) label(line string) string {
	name := n.Name
	if n.Namespace != "" {
		name = n.Namespace + "/" + name
	}
	if n.Section != "" {
		return n.Kind + line + name + "#" + n.Section
	}
	return n.Kind + line + name
}
