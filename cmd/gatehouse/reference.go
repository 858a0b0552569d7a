package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newReference makes the command that writes the command reference: the docs
// and the program can't disagree.
func newReference() *cobra.Command {
	return &cobra.Command{
		Use:    "reference FILE",
		Short:  "Write the command reference as Markdown",
		Hidden: true,
		Args:   usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var b strings.Builder
			b.WriteString("# Commands\n\nGenerated from the program by `make generate`; `gatehouse COMMAND --help` says the same.\n\n" +
				"Exit codes: 0 for success, 1 for a failure or a problem found, 2 for a mistake in the command line.\n")
			reference(&b, cmd.Root())
			return os.WriteFile(filepath.Clean(args[0]), []byte(b.String()), 0o644) //nolint:gosec // documentation is public
		},
	}
}

func reference(w io.Writer, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" {
		return
	}
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(w, "\n## %s\n\n%s\n", cmd.CommandPath(), text)
	if cmd.Runnable() && cmd.HasParent() {
		fmt.Fprintf(w, "\n```\n%s\n```\n", cmd.UseLine())
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	}
	rows := 0
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if rows++; rows == 1 {
			fmt.Fprint(w, "\n| flag | default | meaning |\n| --- | --- | --- |\n")
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		def := f.DefValue
		if def == "[]" {
			def = ""
		}
		if def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", name, def, f.Usage)
	})
	for _, sub := range cmd.Commands() {
		reference(w, sub)
	}
}
