package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/pkg/topology"
)

func newTopology() *cobra.Command {
	var evaluate evaluateFlags
	var paths pathFlags
	var output, focus, stateDir string
	var cluster clusterFlags
	forms := []string{"tree", "dot", "mermaid", "json"}
	cmd := &cobra.Command{
		Use:   "topology [PATH... | -n NAMESPACE | -A]",
		Short: "Draw which routes are attached to which Gateways, and the policies on them",
		Long: `Draw the GatewayClasses, Gateways, listeners, routes, rules and Services of files or of a
cluster as a tree, or for Graphviz (dot), Mermaid or programs (json). A route is below a
listener only where it is attached to it: what allowedRoutes, hostnames and
ReferenceGrants forbid is not drawn. What something refers to and does not exist is
drawn as missing. PATH is a directory, a file or - for standard input. The exit code is 1
when a file or an object has a problem, which is told on standard error, and when files
hold nothing; what there is is drawn then, too.

Without PATH, the 'gatehouse run' that runs here is asked for its objects, or the one that
--state-dir names.

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
			who, namespace, err := evaluate.ask(cmd, files, &cluster, stateDir)
			if err != nil {
				return err
			}
			v, err := who.view()
			if err != nil {
				return err
			}
			var of object.Key
			if focus != "" {
				node, err := nodeNamed(focus, cmp.Or(namespace, "default"))
				if err != nil {
					return err
				}
				of = keyOf(node)
			}
			drawn, err := who.drawn(of, namespace)
			if err != nil {
				return err
			}
			if drawn.Absent != "" {
				_ = tellProblems(cmd.ErrOrStderr(), v, namespace) // one of them may be why
				return fmt.Errorf("--focus: %s", drawn.Absent)
			}
			if err := draw(cmd.OutOrStdout(), output, drawn.Drawing); err != nil || cluster.asked(cmd) {
				return err
			}
			return judge(cmd.ErrOrStderr(), v)
		},
	}
	fl := cmd.Flags()
	paths.define(fl)
	fl.StringVarP(&output, "output", "o", "tree", "tree, dot, mermaid or json")
	fl.StringVar(&focus, "focus", "", "draw what is above and below one object, such as gateway/web or httproute/shop/web")
	defineStateDir(cmd, &stateDir)
	evaluate.define(fl)
	cluster.define(fl)
	exceptCluster(cmd, "state-dir")
	complete(cmd, "output", forms...)
	return cmd
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
