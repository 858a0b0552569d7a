package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// environment lets every flag of a command be set by an environment variable too:
// --log-level by GATEHOUSE_LOG_LEVEL. A flag on the command line wins. A command
// calls it once its flags are defined.
func environment(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage += " [" + variable(f) + "]" })
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) (err error) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			value, ok := os.LookupEnv(variable(f))
			if !ok || f.Changed || err != nil {
				return
			}
			if set := cmd.Flags().Set(f.Name, value); set != nil {
				err = usageError{fmt.Errorf("environment variable %s: %w", variable(f), withFlag(set))}
			}
		})
		return err
	}
}

func variable(f *pflag.Flag) string {
	return "GATEHOUSE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
}
