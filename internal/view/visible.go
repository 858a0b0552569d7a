package view

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	network "github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// VisibleIn is what of a drawing of everything those may see who may read one namespace: the objects there, the Gateways, listeners
// and classes above their routes, and what their routes send to. Those are named in the objects themselves. What others
// attach to a Gateway of the namespace, or target above it, stays out, and so does what there is to say of others' objects.
func VisibleIn(all network.Drawing, namespace string) network.Drawing {
	visible := map[network.Node]bool{}
	for _, n := range all.Nodes {
		if n.Namespace == namespace {
			visible[n.Node] = true
		}
	}
	var above, out network.Drawing
	for _, e := range all.Edges {
		switch {
		case isAbove(e.From):
			above.Edges = append(above.Edges, e)
		case visible[e.From] && isTarget(e.To):
			visible[e.To] = true
		}
	}
	// A Service has its ports below it.
	for _, e := range all.Edges {
		if isTarget(e.From) && visible[e.From] && isTarget(e.To) {
			visible[e.To] = true
		}
	}
	for grows := true; grows; {
		grows = false
		for _, e := range above.Edges {
			if visible[e.To] && !visible[e.From] {
				visible[e.From], grows = true, true
			}
		}
	}
	for _, n := range all.Nodes {
		if !visible[n.Node] {
			continue
		}
		if n.Namespace != namespace {
			n.State = ""
		}
		out.Nodes = append(out.Nodes, n)
	}
	out.Edges = slices.DeleteFunc(slices.Clone(all.Edges), func(e network.Edge) bool { return !visible[e.From] || !visible[e.To] })
	return out
}

// isAbove reports whether a node is one that routes are attached to, or above one.
func isAbove(n network.Node) bool {
	switch object.KindOf(n.Group, n.Kind) {
	case kind.GatewayClass, kind.Gateway, kind.ListenerSet:
		return true
	}
	return false
}

// isTarget reports whether a node is one that routes send to.
func isTarget(n network.Node) bool {
	switch object.KindOf(n.Group, n.Kind) {
	case kind.Service, kind.ServiceImport, kind.XBackend, kind.InferencePool:
		return true
	}
	return false
}
