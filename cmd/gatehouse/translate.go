package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/standalone"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

var stages = []string{"ir", "xds", "status", "yaml"}

func newTranslate() *cobra.Command {
	var opts standalone.EvaluateOptions
	var output string
	var client clientFlags
	var cluster clusterFlags
	cmd := &cobra.Command{
		Use:   "translate -f DIR|FILE|-... | -n NAMESPACE | -A",
		Short: "Print what files or a cluster's objects become, without running anything",
		Long: `Print what files become: the intermediate representation (ir), Envoy's
configuration (xds), the status of every object (status), or all of it (yaml).
The output depends on the input alone. Secrets are not printed.

With --namespace, --all-namespaces, --context or --kubeconfig the objects of a
Kubernetes cluster are read instead, as kubectl would choose it: all that the
Gateways of the namespace need, wherever it is. The status is then what this
gatehouse would say before any proxy has answered; see 'gatehouse status' for what
the cluster says.`,
		Example: `  gatehouse translate -f examples/quickstart -o xds
  kubectl get gateways,httproutes,services -A -o yaml | gatehouse translate -f - -o status
  gatehouse translate -n shop -o xds`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(opts.Paths) == 0 && !cluster.asked(cmd) {
				return usageError{fmt.Errorf("nothing to translate: name files with -f, or a cluster's objects with -n NAMESPACE or -A")}
			}
			if err := oneOf("output", output, stages...); err != nil {
				return err
			}
			var err error
			if opts.Client, err = client.options(); err != nil {
				return err
			}
			opts.Stdin = cmd.InOrStdin()
			var p *pipeline.Pipeline
			var namespace string
			if len(opts.Paths) > 0 {
				p, err = standalone.Evaluate(cmd.Context(), opts)
			} else {
				p, namespace, err = cluster.evaluate(cmd.Context())
			}
			if err != nil {
				return err
			}
			if err := view.PrintNamespace(cmd.OutOrStdout(), p, view.Stage(output), namespace); err != nil {
				return err
			}
			v := view.Of(p)
			for _, problem := range v.Problems {
				fmt.Fprintln(cmd.ErrOrStderr(), problem.Error())
			}
			if len(v.Problems) > 0 {
				return errFound
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVarP(&opts.Paths, "filename", "f", nil, "directory, file or - to read; repeatable")
	fl.StringVarP(&output, "output", "o", "yaml", "ir, xds, status or yaml")
	fl.BoolVar(&opts.Experimental, "experimental", false, "read the experimental channel of the Gateway API")
	fl.StringArrayVar(&opts.Bind, "bind", []string{"127.0.0.1"}, "IP address for the listeners of Gateways without spec.addresses; repeatable")
	boundedVar(fl, &opts.PortOffset, "port-offset", 0, 0, maxPortOffset, "added to the port of every listener")
	defineUnsafe(fl, &opts.UnsafeParameters)
	client.define(fl)
	cluster.define(fl)
	for _, flag := range clusterFlagNames {
		cmd.MarkFlagsMutuallyExclusive("filename", flag)
	}
	complete(cmd, "output", stages...)
	return cmd
}
