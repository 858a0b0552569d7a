package view_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

// TestVisibleIn protects what others do from who may read one namespace alone.
func TestVisibleIn(t *testing.T) {
	t.Parallel()
	policy := func(namespace, name string) topology.Node {
		return topology.Node{Group: "gatehouse.dev", Kind: "AuthPolicy", Namespace: namespace, Name: name}
	}
	class, edge := topology.GatewayClass("gatehouse"), topology.Gateway("infra", "edge")
	http := edge.At("http")
	ours, theirs := topology.HTTPRoute("shop", "web"), topology.HTTPRoute("bank", "vault")
	rule, shared := ours.At("rule-1"), topology.Service("shared", "cart")
	port, vault := shared.At("80"), topology.Service("bank", "vault")
	guard, own := policy("infra", "guard"), policy("shop", "own")
	var all topology.Drawing
	for _, n := range []topology.Node{class, edge, http, ours, theirs, rule, shared, port, vault} {
		all.Nodes = append(all.Nodes, topology.DrawnNode{Node: n, State: "of " + n.Namespace})
	}
	for _, n := range []topology.Node{guard, own} {
		all.Nodes = append(all.Nodes, topology.DrawnNode{Node: n, Policy: true})
	}
	for _, e := range [][2]topology.Node{
		{class, edge}, {edge, http}, {http, ours}, {http, theirs}, {ours, rule}, {rule, shared}, {shared, port}, {theirs, vault}, {guard, edge}, {own, ours}, {theirs, shared},
	} {
		all.Edges = append(all.Edges, topology.Edge{From: e[0], To: e[1]})
	}
	seen := func(namespace string) string {
		d := view.VisibleIn(all, namespace)
		var out []string
		for _, n := range d.Nodes {
			out = append(out, n.Kind+" "+n.Name+" "+n.Section+" "+n.State)
		}
		for _, e := range d.Edges {
			if !slices.ContainsFunc(d.Nodes, func(n topology.DrawnNode) bool { return n.Node == e.From }) ||
				!slices.ContainsFunc(d.Nodes, func(n topology.DrawnNode) bool { return n.Node == e.To }) {
				t.Errorf("%s: an edge to what is not drawn: %v", namespace, e)
			}
		}
		slices.Sort(out)
		return strings.Join(out, "\n")
	}
	for namespace, want := range map[string]string{
		"shop":   "AuthPolicy own  \nGateway edge  \nGateway edge http \nGatewayClass gatehouse  \nHTTPRoute web  of shop\nHTTPRoute web rule-1 of shop\nService cart  \nService cart 80 ",
		"infra":  "AuthPolicy guard  \nGateway edge  of infra\nGateway edge http of infra\nGatewayClass gatehouse  ",
		"shared": "Service cart  of shared\nService cart 80 of shared",
		"none":   "",
	} {
		if got := seen(namespace); got != want {
			t.Errorf("in %s is seen\n%s\nnot\n%s", namespace, got, want)
		}
	}
}
