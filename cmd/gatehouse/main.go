// Command gatehouse serves the Kubernetes Gateway API with Envoy.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// Exit codes, for scripts.
const (
	exitFailed = 1 // the command could not do its work, or found a problem
	exitUsage  = 2 // the command line makes no sense
)

// errFound says that a command worked and found a problem, which it has already
// told.
var errFound = errors.New("problems found")

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func main() {
	cmd, err := newRoot().ExecuteContextC(untilStopped())
	os.Exit(exitCode(cmd, err))
}

func exitCode(cmd *cobra.Command, err error) int {
	var usage usageError
	var child childError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFound):
		return exitFailed
	case errors.As(err, &child): // it has told why
		return max(child.code, exitFailed)
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "gatehouse: %v\nRun '%s --help' for usage.\n", err, cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(os.Stderr, "gatehouse: %v\n", err)
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "gatehouse",
		Short: "A control plane for the Kubernetes Gateway API on Envoy",
		Long: `Gatehouse turns Gateway API objects into a running Envoy.

Without a cluster, 'gatehouse run DIR' reads manifests from files and serves them
with Envoy processes on this machine; saving a file takes effect at once.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version,
		Args:          subcommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return exclusive(cmd.ValidateFlagGroups())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("gatehouse {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{flagError(err)} })
	root.AddCommand(newRun(), newController(), newStaticMode(), newProvisionerMode(), newServeConfig(), newStatus(), newProxies(), newTop(), newProxyConfig(), newTranslate(), newTopology(), newPolicies(), newBlueprint(), newMigrate(), newProxy(), newLimits(), newTeardown(), newEnvoy(), newEcho(), newVersion(), newReference())
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" { // the library's own
			continue
		}
		cmd.Args, cmd.RunE = subcommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		for _, shell := range cmd.Commands() {
			shell.Args = usage(shell.Args)
		}
	}
	return root
}
