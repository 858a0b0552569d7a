package view

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/blueprint"
	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	network "github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// Rendered is what a Gateway has by the blueprint of its class.
type Rendered struct {
	Gateway   object.Name         `json:"gateway"`
	Objects   []RenderedObject    `json:"objects"`
	Undecided []RenderedUndecided `json:"undecided,omitempty"`
	// Problem says why nothing is rendered; empty where something is.
	Problem   string   `json:"problem,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	NoAddress string   `json:"noAddress,omitempty"`
	Values    []Value  `json:"values"`
}

// RenderedObject is an object, and of which place of the blueprint it is.
type RenderedObject struct {
	Place  string `json:"resource"`
	Object any    `json:"object"`
	// State says how the object is in the cluster; empty where it isn't there.
	State string `json:"state,omitempty"`
}

// stateReady is the state of an object that is ready.
const stateReady = "ready"

func stateOf(c *blueprint.Child) string {
	switch {
	case !c.Live:
		return ""
	case c.NotReady != "":
		return "not ready: " + c.NotReady
	default:
		return stateReady
	}
}

// RenderedUndecided is a resource that is not rendered.
type RenderedUndecided struct {
	Place string `json:"resource"`
	Why   string `json:"why"`
	// Waits says that an object in the cluster may bring what is missing.
	Waits bool `json:"waits"`
}

// Value is a leaf of a Gateway's values, and who says it.
type Value struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
	From  string `json:"from"`
}

// RenderedOf returns what the Gateways of a pipeline have by blueprints; of one Gateway, unless
// that is zero.
func RenderedOf(p *pipeline.Pipeline, gateway object.Name) (out []Rendered) {
	if p.Children == nil {
		return nil
	}
	p.Engine.View(func(c *flow.Ctx) {
		for name, ch := range flow.All(c, p.Children) {
			if gateway.IsZero() || gateway == name {
				out = append(out, renderedOf(ch))
			}
		}
	})
	return out
}

func renderedOf(ch *blueprint.Children) Rendered {
	out := Rendered{
		Gateway: ch.Gateway, Problem: ch.Unknown, Addresses: ch.Addresses, NoAddress: ch.NoAddress,
		Objects: []RenderedObject{}, Values: []Value{},
	}
	for i := range ch.Children {
		out.Objects = append(out.Objects, RenderedObject{ch.Children[i].Place.String(), ch.Children[i].Object.Object, stateOf(&ch.Children[i])})
	}
	for _, h := range ch.Undecided {
		out.Undecided = append(out.Undecided, RenderedUndecided{h.Place.String(), h.Why, h.Waits})
	}
	for _, leaf := range ch.Values.Leaves() {
		out.Values = append(out.Values, Value{leaf.Name, leaf.Value, leaf.Origin.String()})
	}
	return out
}

// drawChildren adds the objects that Gateways of a drawing have by blueprints.
func drawChildren(p *pipeline.Pipeline, d *network.Drawing) {
	if p.Children == nil {
		return
	}
	p.Engine.View(func(c *flow.Ctx) {
		for _, n := range slices.Clone(d.Nodes) {
			if n.Kind != kind.Gateway.Name() || n.Section != "" {
				continue
			}
			ch, ok := flow.Get(c, p.Children, object.Name{Namespace: n.Namespace, Name: n.Name})
			if !ok {
				continue
			}
			for i := range ch.Children {
				ref, state := ch.Children[i].Ref(), stateOf(&ch.Children[i])
				child := network.Node{Group: ref.Kind.Group, Kind: ref.Kind.Kind, Namespace: ref.Namespace, Name: ref.Name.Name}
				if !slices.ContainsFunc(d.Nodes, func(n network.DrawnNode) bool { return n.Node == child }) {
					d.Nodes = append(d.Nodes, network.DrawnNode{Node: child, Missing: state == "", State: state})
				}
				d.Edges = append(d.Edges, network.Edge{From: n.Node, To: child})
			}
		}
	})
	d.Sort()
}
