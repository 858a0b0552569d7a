package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usage wraps an argument check so that its errors count as mistakes of usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// subcommand is the argument check of a command that only groups others.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("unknown command %q", args[0])
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		text += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return usageError{errors.New(text)}
}

// exclusive makes a mistake of usage of flags that exclude each other. The library's
// words are about groups of flags.
func exclusive(err error) error {
	if err == nil {
		return nil
	}
	if _, list, ok := strings.Cut(err.Error(), "; ["); ok {
		if list, _, ok = strings.Cut(list, "]"); ok {
			return usageError{errors.New("--" + strings.Join(strings.Fields(list), " and --") + " exclude each other: leave out all but one")}
		}
	}
	return usageError{err}
}

// oneOf reports a flag value that is none of the allowed ones. An empty one is
// the default, which nobody would type.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	named := slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return s == "" })
	return usageError{fmt.Errorf("--%s: %q is none of %s", flag, value, strings.Join(named, ", "))}
}

// flagError says what is wrong with a flag's value in words that are not those of
// a parser.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) || invalid.GetFlag().Value.Type() != "bool" {
		return withFlag(err)
	}
	return fmt.Errorf("--%s: %q is not true or false", invalid.GetFlag().Name, invalid.GetValue())
}

// complete offers values of a flag to the shell.
func complete(cmd *cobra.Command, flag string, values ...string) {
	// It fails only for a flag that doesn't exist.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
