package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/provisionermode"
)

func newProvisionerMode() *cobra.Command {
	var class classFlags
	var o provisionermode.Options
	var logs logFlags
	cmd := &cobra.Command{
		Use:   "provisioner-mode --gateway-ctlr-name DOMAIN/PATH --gatewayclass NAME",
		Short: "Run a process of static-mode for each Gateway (for developers; not for production)",
		Long: `Make a Deployment that runs 'gatehouse static-mode' for each Gateway of a
GatewayClass, in the namespace that this process runs in, and delete it with the
Gateway. It is for tests of conformance, not for production.`,
		Hidden: true,
		Args:   usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logs.check(); err != nil {
				return err
			}
			var err error
			if o.Namespace, err = podVariable("POD_NAMESPACE"); err != nil {
				return err
			}
			o.Log = logs.logger()
			kubernetesLogs(o.Log)
			o.ControllerName, o.Class = class.controller, class.name
			o.Log.Warn("provisioner-mode is not for production: it is for tests of conformance; use 'gatehouse controller' instead")
			o.Log.Info("starting", "version", version, "class", o.Class, "controller", o.ControllerName, "namespace", o.Namespace)
			if err := provisionermode.Run(cmd.Context(), o); err != nil {
				return fmt.Errorf("provisioner: %w", err)
			}
			o.Log.Info("stopped")
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&o.Image, "image", "gatehouse:"+version, "image of the Gateways' processes")
	fl.StringVar(&o.PullPolicy, "image-pull-policy", "IfNotPresent", "when that image is pulled")
	logs.define(cmd)
	class.define(cmd)
	return cmd
}
