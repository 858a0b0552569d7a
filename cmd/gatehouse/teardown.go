package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/internal/configuration"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/teardown"
)

func newTeardown() *cobra.Command {
	var in controllerFlags
	var deployments []string
	var lease string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "teardown",
		Short: "Stop the controllers of a cluster and release their GatewayClasses, before Gatehouse is uninstalled",
		Long: `Stop the controllers of a cluster and release their GatewayClasses, before Gatehouse
is uninstalled. A class that Gateways use has a finalizer, and without a controller nobody
would take it away. The chart does this by itself when it is uninstalled.

Gateways and their proxies stay, and serve on as they are.`,
		Example: `  gatehouse teardown
  kubectl delete -f config/install.yaml`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			self, err := in.self()
			if err != nil {
				return err
			}
			rest, err := in.cluster()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return teardown.Run(ctx, teardown.Options{
				REST: rest, ControllerName: in.controllerName, Namespace: self.Namespace, Deployments: deployments,
				Claim:  client.ObjectKey{Namespace: configuration.ClaimNamespace, Name: configuration.ClaimName(in.controllerName)},
				Holder: configuration.ClaimHolder(self.Namespace, lease),
				Tell:   func(s string) { fmt.Fprintln(cmd.OutOrStdout(), s) },
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&in.kubeconfig, "kubeconfig", "", "kubeconfig file (default: the Pod's ServiceAccount, else kubectl's rules)")
	fl.StringVar(&in.context, "context", "", "context of the kubeconfig")
	fl.StringVarP(&in.podNamespace, "namespace", "n", "", "namespace of the controllers (default: the ServiceAccount's, else gatehouse-system)")
	fl.StringSliceVar(&deployments, "deployment", []string{"gatehouse"}, "the Deployments of the controllers: two where what makes fleets is apart")
	fl.StringVar(&lease, "lease", configuration.Default().LeaderElection.Name, "the Lease of the controllers' leader election")
	fl.StringVar(&in.controllerName, "controller-name", pipeline.ControllerName, "controllerName of their GatewayClasses")
	boundedVar(fl, &timeout, "timeout", 2*time.Minute, time.Second, maxDrain, "how long the controllers may take to end")
	return cmd
}
