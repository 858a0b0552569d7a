package view

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	network "github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// InForce is what is in force for an object.
type InForce struct {
	Paths []Effective `json:"paths"`
	// Absent says that the object doesn't exist, and which one may be meant; empty where it does.
	Absent string `json:"absent,omitempty"`
}

// InForceFor says what is in force for an object or a section of it; no paths where no listener
// serves it.
func InForceFor(p *pipeline.Pipeline, of object.Key, section string) InForce {
	paths, ok := EffectivePolicies(p, of, section)
	if !ok {
		return InForce{Absent: absence(p, of)}
	}
	return InForce{Paths: paths}
}

func absence(p *pipeline.Pipeline, of object.Key) string {
	if err := Absent(p, of); err != nil {
		return err.Error()
	}
	return ""
}

// Drawn is a drawing of objects.
type Drawn struct {
	Drawing network.Drawing `json:"drawing"`
	// Absent says why the object that was asked for is not drawn; empty where it is.
	Absent string `json:"absent,omitempty"`
}

// DrawnOf draws what is above and below an object; without one, of a namespace, or all if that is
// empty.
func DrawnOf(p *pipeline.Pipeline, focus object.Key, namespace string) Drawn {
	g := networkOf(p)
	drawn := func(focus ...network.Node) Drawn {
		out := Drawn{Drawing: g.Draw(focus...)}
		drawChildren(p, &out.Drawing)
		return out
	}
	if focus.IsZero() {
		return drawn(namespaceNodes(g, namespace)...)
	}
	node := network.Node{Group: focus.Kind.Group(), Kind: focus.Kind.Name(), Namespace: focus.Namespace, Name: focus.Name.Name}
	if g.Exists(node) {
		return drawn(node)
	}
	if why := absence(p, focus); why != "" {
		return Drawn{Absent: why}
	}
	return Drawn{Absent: fmt.Sprintf("%s is not drawn", node)}
}

// networkOf is the graph of the objects that a pipeline has.
func networkOf(p *pipeline.Pipeline) *network.Graph {
	o := p.Options.Topology
	g := network.New(network.Options{ControllerName: o.ControllerName, ImplicitClass: o.ImplicitClass, Experimental: o.Experimental})
	g.Update(func(tx *network.Tx) {
		p.Engine.View(func(c *flow.Ctx) {
			p.Inputs.Objects(c, func(o source.Object) { _ = tx.Set(o) })
		})
	})
	return g
}

// namespaceNodes are what to draw of a namespace: its Gateways and routes; nothing, which
// stands for all, if it is empty.
func namespaceNodes(g *network.Graph, namespace string) (out []network.Node) {
	if namespace == "" {
		return nil
	}
	for _, n := range g.Draw().Nodes {
		if n.Namespace == namespace && n.Section == "" && !n.Policy {
			out = append(out, n.Node)
		}
	}
	return out
}
