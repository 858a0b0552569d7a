// Command gatehouse serves the Kubernetes Gateway API with Envoy.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() { // a second Ctrl-C ends the process at once; SIGTERM stays graceful
		<-ctx.Done()
		signal.Reset(os.Interrupt)
	}()
	code := exitCode(newRoot().ExecuteContext(ctx))
	stop()
	os.Exit(code)
}

func exitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFound):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "gatehouse: %v\nRun 'gatehouse --help' for usage.\n", err)
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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newRun(), newStatus(), newTranslate(), newEnvoy(), newEcho(), newVersion(), newReference())
	root.InitDefaultCompletionCmd()
	return root
}

// usage wraps an argument check so that its errors count as mistakes of usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// oneOf reports a flag value that is none of the allowed ones.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return usageError{fmt.Errorf("--%s: %q is none of %v", flag, value, allowed)}
}
