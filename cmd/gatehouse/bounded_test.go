package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every number and duration on a command line is refused by its flag, which says what
// it takes: nothing that a person has mistyped reaches what the command does.
func TestFlagsAreBounded(t *testing.T) {
	var all []string
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if kind := f.Value.Type(); !strings.HasPrefix(kind, "int") && !strings.HasPrefix(kind, "uint") &&
				!strings.HasPrefix(kind, "float") && kind != "duration" && kind != "count" {
				return
			}
			path := strings.Fields(cmd.CommandPath())[1:]
			all = append(all, strings.Join(path, " ")+" --"+f.Name)
			for _, bad := range []string{"-1", "-5s", "4294967297", "2562047h", "many", ""} {
				root := newRoot()
				root.SetArgs(append(slices.Clone(path), "--"+f.Name+"="+bad))
				cmd, err := root.ExecuteContextC(t.Context())
				if err == nil || !strings.HasPrefix(err.Error(), "--"+f.Name+": ") || !strings.Contains(err.Error(), bad) ||
					!strings.Contains(err.Error(), " between ") {
					t.Errorf("%s --%s=%s: %v", cmd.CommandPath(), f.Name, bad, err)
				} else if code := exitCode(cmd, err); code != exitUsage {
					t.Errorf("%s --%s=%s: exit code %d", cmd.CommandPath(), f.Name, bad, code)
				}
			}
		})
	}
	visit(newRoot())
	if len(all) < 14 {
		t.Errorf("only %d flags were found: %q", len(all), all)
	}
}
