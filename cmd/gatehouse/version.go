package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

// version is set by the Makefile.
var version = "dev"

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of Gatehouse, Envoy and the Gateway API",
		Args:  usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "gatehouse    %s\ngateway-api  %s\nenvoy        %s\ngo           %s %s/%s\n",
				version, consts.BundleVersion, proxy.SupportedVersions, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
