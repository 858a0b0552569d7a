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
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/view"
	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

func newTopology() *cobra.Command {
	var evaluate evaluateFlags
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
drawn as missing. PATH is a directory, a file or - for standard input. The exit code is 1
when a file or an object has a problem, which is told on standard error, and when files
hold nothing; what there is is drawn then, too.

With --namespace, --all-namespaces, --context or --kubeconfig the objects of a
Kubernetes cluster are drawn instead, as kubectl would choose it.`,
		Example: `  gatehouse topology examples/quickstart
  gatehouse topology -A --focus gateway/shop/web
  gatehouse topology -n shop -o dot | dot -Tsvg > shop.svg`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, forms...); err != nil {
				return err
			}
			files := paths.all(args)
			p, namespace, err := evaluate.evaluated(cmd, files, &cluster, "show", "shown")
			if err != nil {
				return err
			}
			g := graphOf(p)
			nodes := namespaceNodes(g, namespace)
			if focus != "" {
				node, err := nodeNamed(focus, cmp.Or(namespace, "default"))
				if err != nil {
					return err
				}
				if !g.Exists(node) {
					_ = tellProblems(cmd.ErrOrStderr(), view.Of(p), namespace) // one of them may be why
					return fmt.Errorf("--focus: %w", cmp.Or(view.Absent(p, keyOf(node)), fmt.Errorf("%s is not drawn", node)))
				}
				nodes = []topology.Node{node}
			}
			if err := draw(cmd.OutOrStdout(), output, g.Draw(nodes...)); err != nil || len(files) == 0 {
				return err
			}
			return judge(cmd.ErrOrStderr(), view.Of(p))
		},
	}
	fl := cmd.Flags()
	paths.define(fl)
	fl.StringVarP(&output, "output", "o", "tree", "tree, dot, mermaid or json")
	fl.StringVar(&focus, "focus", "", "draw what is above and below one object, such as gateway/web or httproute/shop/web")
	evaluate.define(fl)
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

// keyOf is the key of a node that is an object.
func keyOf(n topology.Node) object.Key {
	return object.Key{Kind: object.KindOf(n.Group, n.Kind), Name: object.Name{Namespace: n.Namespace, Name: n.Name}}
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
