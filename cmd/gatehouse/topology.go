package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/standalone"
	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

func newTopology() *cobra.Command {
	opts := standalone.EvaluateOptions{Bind: []string{"127.0.0.1"}}
	var paths pathFlags
	var output, focus string
	var cluster clusterFlags
	forms := []string{"tree", "dot", "mermaid", "json"}
	cmd := &cobra.Command{
		Use:   "topology PATH... | -n NAMESPACE | -A",
		Short: "Draw which routes are attached to which Gateways, and the policies on them",
		Long: `Draw the GatewayClasses, Gateways, listeners, routes, rules and Services of files or of a
cluster as a tree, or for Graphviz (dot), Mermaid or programs (json). A route is below a
listener only where it is attached to it: what allowedRoutes, hostnames and
ReferenceGrants forbid is not drawn. What something refers to and does not exist is
drawn as missing. PATH is a directory, a file or - for standard input.

With --namespace, --all-namespaces, --context or --kubeconfig the objects of a
Kubernetes cluster are drawn instead, as kubectl would choose it.`,
		Example: `  gatehouse topology examples/quickstart
  gatehouse topology -A --focus gateway/shop/web
  gatehouse topology -n shop -o dot | dot -Tsvg > shop.svg`,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Paths = paths.all(args)
			if err := oneOf("output", output, forms...); err != nil {
				return err
			}
			p, namespace, err := evaluated(cmd, &opts, &cluster)
			if err != nil {
				return err
			}
			g := graphOf(p)
			if focus == "" {
				return draw(cmd.OutOrStdout(), output, g.Draw(namespaceNodes(g, namespace)...))
			}
			node, err := nodeNamed(focus, cmp.Or(namespace, "default"))
			if err != nil {
				return err
			}
			if !g.Exists(node) {
				return fmt.Errorf("--focus: there is no %s", node)
			}
			return draw(cmd.OutOrStdout(), output, g.Draw(node))
		},
	}
	fl := cmd.Flags()
	paths.define(fl)
	fl.StringVarP(&output, "output", "o", "tree", "tree, dot, mermaid or json")
	fl.StringVar(&focus, "focus", "", "draw what is above and below one object, such as gateway/web or httproute/shop/web")
	fl.BoolVar(&opts.Experimental, "experimental", false, "read the experimental channel of the Gateway API")
	cluster.define(fl)
	complete(cmd, "output", forms...)
	return cmd
}

// graphOf is the graph of the objects that a pipeline has.
func graphOf(p *pipeline.Pipeline) *topology.Graph {
	o := p.Options.Topology
	g := topology.New(topology.Options{ControllerName: o.ControllerName, ImplicitClass: o.ImplicitClass, Experimental: o.Experimental})
	g.Update(func(tx *topology.Tx) {
		p.Engine.View(func(c *flow.Ctx) {
			p.Inputs.Objects(c, func(o source.Object) { _ = tx.Set(o) })
		})
	})
	return g
}

// namespaceNodes are what to draw of a namespace: its Gateways and routes; nothing, which
// stands for all, if it is empty.
func namespaceNodes(g *topology.Graph, namespace string) (out []topology.Node) {
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

// nodeNamed reads KIND/NAME, in a namespace, or KIND/NAMESPACE/NAME.
func nodeNamed(text, namespace string) (topology.Node, error) {
	word, name, ok := strings.Cut(text, "/")
	for d := range kind.All.Rows() {
		if !ok || name == "" || strings.TrimSuffix(strings.ToLower(word), "s") != strings.TrimSuffix(d.Word(), "s") && !containsFold(d.Words, word) {
			continue
		}
		n := topology.Node{Group: d.Kind.Group(), Kind: d.Kind.Name(), Name: name}
		if d.Scope == kind.Namespaced {
			n.Namespace = namespace
			if ns, rest, both := strings.Cut(name, "/"); both {
				n.Namespace, n.Name = ns, rest
			}
		}
		return n, nil
	}
	return topology.Node{}, usageError{fmt.Errorf("--focus: %q is no KIND/NAME, such as gateway/web, httproute/shop/web or service/cart", text)}
}

func containsFold(words []string, word string) bool {
	for _, w := range words {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

func draw(w io.Writer, form string, d topology.Drawing) error {
	if form == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(d)
	}
	text := map[string]func() string{"tree": d.Tree, "dot": d.DOT, "mermaid": d.Mermaid}[form]()
	_, err := io.WriteString(w, text)
	return err
}
