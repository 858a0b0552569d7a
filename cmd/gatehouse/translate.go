package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

var stages = []string{"ir", "xds", "status", "yaml"}

func newTranslate() *cobra.Command {
	var evaluate evaluateFlags
	var paths pathFlags
	var output, only string
	var cluster clusterFlags
	cmd := &cobra.Command{
		Use:   "translate PATH... | -n NAMESPACE | -A",
		Short: "Print what files or a cluster's objects become, without running anything",
		Long: `Print what files become: the intermediate representation (ir), Envoy's
configuration (xds), the status of every object (status), or all of it (yaml).
PATH is a directory, a file or - for standard input. The exit code is 1 when a file or
an object has a problem, which is told on standard error, and when files hold nothing;
the output is whole then, too.
The output depends on the input alone. Secrets are not printed.

With --namespace, --all-namespaces, --context or --kubeconfig the objects of a
Kubernetes cluster are read instead, as kubectl would choose it: all that the
Gateways of the namespace need, wherever it is. The status is then what this
gatehouse would say before any proxy has answered; see 'gatehouse status' for what
the cluster says.`,
		Example: `  gatehouse translate examples/quickstart -o xds
  kubectl get gateways,httproutes,services -A -o yaml | gatehouse translate - -o status
  gatehouse translate manifests -o xds --only shop.example.com
  gatehouse translate -n shop -o xds --only httproute/shop/web`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, stages...); err != nil {
				return err
			}
			focus, err := focusOn(only, cmp.Or(cluster.namespace, "default"))
			if err != nil {
				return err
			}
			files := paths.all(args)
			var p *pipeline.Pipeline
			if p, focus.Namespace, err = evaluate.evaluated(cmd, files, &cluster, "translate", "translated"); err != nil {
				return err
			}
			if err := focus.Missing(p); err != nil {
				_ = tellProblems(cmd.ErrOrStderr(), view.Of(p), focus.Namespace) // one of them may be why
				return err
			}
			if err := view.PrintFocus(cmd.OutOrStdout(), p, view.Stage(output), focus); err != nil {
				return err
			}
			if len(files) > 0 {
				return judge(cmd.ErrOrStderr(), view.Of(p))
			}
			return tellProblems(cmd.ErrOrStderr(), view.Of(p), focus.Namespace)
		},
	}
	fl := cmd.Flags()
	paths.define(fl)
	fl.StringVarP(&output, "output", "o", "yaml", "ir, xds, status or yaml")
	fl.StringVar(&only, "only", "", "print what concerns one host, such as shop.example.com, one HTTPRoute or GRPCRoute, such as httproute/shop/web, or one Gateway")
	evaluate.define(fl)
	cluster.define(fl)
	complete(cmd, "output", stages...)
	return cmd
}

// focusOn reads what --only chooses: KIND/NAME, in a namespace, KIND/NAMESPACE/NAME, or a
// host.
func focusOn(text, namespace string) (f view.Focus, err error) {
	if text == "" {
		return f, nil
	}
	s, err := parseSelection(text)
	if err != nil && !strings.Contains(text, "/") {
		return view.Focus{Host: text}, nil
	}
	if err != nil {
		return f, err
	}
	name := object.Name{Namespace: cmp.Or(s.namespace, namespace), Name: s.name}
	switch s.kind {
	case kind.Gateway.Name():
		f.Gateway = name
	case kind.HTTPRoute.Name():
		f.Route = object.Key{Kind: kind.HTTPRoute, Name: name}
	case kind.GRPCRoute.Name():
		f.Route = object.Key{Kind: kind.GRPCRoute, Name: name}
	}
	if f == (view.Focus{}) || s.name == "" {
		return f, usageError{fmt.Errorf("--only: %q is none of a host, httproute/NAME, grpcroute/NAME and gateway/NAME", text)}
	}
	return f, nil
}
