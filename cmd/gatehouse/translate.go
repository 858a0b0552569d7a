package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/standalone"
	"github.com/gatehouse-dev/gatehouse/internal/terminal"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

var stages = []string{"ir", "xds", "status", "yaml"}

func newTranslate() *cobra.Command {
	var opts standalone.EvaluateOptions
	var paths pathFlags
	var output, only string
	var client clientFlags
	var cluster clusterFlags
	cmd := &cobra.Command{
		Use:   "translate PATH... | -n NAMESPACE | -A",
		Short: "Print what files or a cluster's objects become, without running anything",
		Long: `Print what files become: the intermediate representation (ir), Envoy's
configuration (xds), the status of every object (status), or all of it (yaml).
PATH is a directory, a file or - for standard input. The exit code is 1 when a file or
an object has a problem, which is told on standard error; the output is whole then, too.
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
			opts.Paths = paths.all(args)
			switch files, asked := len(opts.Paths) > 0, cluster.asked(cmd); {
			case !files && !asked:
				return usageError{errors.New("nothing to translate: name files, or a cluster's objects with -n NAMESPACE or -A")}
			case files && asked:
				return usageError{errors.New("either files are translated or a cluster's objects: leave out " + opts.Paths[0] + ", or the flags that choose a cluster")}
			}
			if err := oneOf("output", output, stages...); err != nil {
				return err
			}
			focus, err := focusOn(only, cmp.Or(cluster.namespace, "default"))
			if err != nil {
				return err
			}
			if opts.Client, err = client.options(); err != nil {
				return err
			}
			opts.Stdin = cmd.InOrStdin()
			var p *pipeline.Pipeline
			if len(opts.Paths) > 0 {
				p, err = standalone.Evaluate(cmd.Context(), opts)
			} else {
				p, focus.Namespace, err = cluster.evaluate(cmd.Context())
			}
			if err != nil {
				return err
			}
			if err := focus.UnknownHost(p); err != nil {
				_ = tellProblems(cmd.ErrOrStderr(), view.Of(p), focus.Namespace) // one of them may be why
				return err
			}
			if err := view.PrintFocus(cmd.OutOrStdout(), p, view.Stage(output), focus); err != nil {
				return err
			}
			return tellProblems(cmd.ErrOrStderr(), view.Of(p), focus.Namespace)
		},
	}
	fl := cmd.Flags()
	paths.define(fl)
	fl.StringVarP(&output, "output", "o", "yaml", "ir, xds, status or yaml")
	fl.StringVar(&only, "only", "", "print what concerns one host, such as shop.example.com, one HTTPRoute or GRPCRoute, such as httproute/shop/web, or one Gateway")
	fl.BoolVar(&opts.Experimental, "experimental", false, "read the experimental channel of the Gateway API")
	fl.StringArrayVar(&opts.Bind, "bind", []string{"127.0.0.1"}, "IP address for the listeners of Gateways without spec.addresses; repeatable")
	boundedVar(fl, &opts.PortOffset, "port-offset", 0, 0, maxPortOffset, "added to the port of every listener")
	defineUnsafe(fl, &opts.UnsafeParameters)
	client.define(fl)
	cluster.define(fl)
	complete(cmd, "output", stages...)
	return cmd
}

// tellProblems tells what is wrong with files, and with the objects of a namespace; all
// if it is empty. It returns errFound if there is something.
func tellProblems(w io.Writer, v view.View, namespace string) error {
	v.Items = slices.DeleteFunc(v.Items, func(it view.Item) bool { return view.Elsewhere(it.Metadata.Namespace, namespace) })
	for _, problem := range v.Problems {
		fmt.Fprintln(w, problem.Error())
	}
	for _, it := range v.Causes() {
		if reason, message, bad := it.Summary.Trouble(); bad {
			fmt.Fprintf(w, "%s: %s: %s\n", it.Key(), reason, message)
		}
	}
	if terminal.Needed(v).Any() {
		return errFound
	}
	return nil
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
