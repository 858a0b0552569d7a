package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/standalone"
	"github.com/gatehouse-dev/gatehouse/internal/terminal"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// evaluateFlags say how files are evaluated, for all commands that do it. What files become
// depends on the flags that `gatehouse run` has too, so they are the same.
type evaluateFlags struct {
	opts   standalone.EvaluateOptions
	client clientFlags
}

// withoutFiles refuses the flags that say how files are evaluated, where none are.
func (*evaluateFlags) withoutFiles(cmd *cobra.Command) (err error) {
	ours := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(evaluateFlags).define(ours)
	ours.VisitAll(func(fl *pflag.Flag) {
		if cmd.Flags().Changed(fl.Name) && err == nil {
			err = usageError{fmt.Errorf("--%s: add --once to evaluate files with it", fl.Name)}
		}
	})
	return err
}

func (f *evaluateFlags) define(fl *pflag.FlagSet) {
	fl.BoolVar(&f.opts.Experimental, "experimental", false, "of files: read the experimental channel of the Gateway API")
	fl.StringArrayVar(&f.opts.Bind, "bind", []string{"127.0.0.1"}, "of files: IP address for the listeners of Gateways without spec.addresses; repeatable")
	boundedVar(fl, &f.opts.PortOffset, "port-offset", 0, 0, maxPortOffset, "of files: added to the port of every listener")
	defineUnsafe(fl, &f.opts.UnsafeParameters)
	f.client.define(fl)
}

// evaluate computes what files become.
func (f *evaluateFlags) evaluate(cmd *cobra.Command, paths []string) (_ *pipeline.Pipeline, err error) {
	if f.opts.Client, err = f.client.options(); err != nil {
		return nil, err
	}
	f.opts.Paths, f.opts.Stdin = paths, cmd.InOrStdin()
	return standalone.Evaluate(cmd.Context(), f.opts)
}

// evaluated computes what the objects of files or of a cluster become. The namespace is that of
// the cluster, empty for all. Verb and done are what the command does, in messages.
func (f *evaluateFlags) evaluated(cmd *cobra.Command, paths []string, cluster *clusterFlags, verb, done string) (p *pipeline.Pipeline, namespace string, err error) {
	switch files, asked := len(paths) > 0, cluster.asked(cmd); {
	case !files && !asked:
		return nil, "", usageError{fmt.Errorf("nothing to %s: name files, or a cluster's objects with -n NAMESPACE or -A", verb)}
	case files && asked:
		return nil, "", usageError{fmt.Errorf("either files are %s or a cluster's objects: leave out %s, or the flags that choose a cluster", done, paths[0])}
	case asked:
		return cluster.evaluate(cmd.Context())
	}
	p, err = f.evaluate(cmd, paths)
	return p, "", err
}

// judge tells what is wrong with files and with what they hold, and returns errFound if there is
// something; it is an error, too, if they hold nothing.
func judge(w io.Writer, v view.View) error {
	if err := tellProblems(w, v, ""); err != nil {
		return err
	}
	if nothingIn(v) {
		return errors.New(nothing(nil, inFiles))
	}
	return nil
}

// tellProblems tells what is wrong with files, and with the objects of a namespace; all
// if it is empty. It returns errFound if there is something.
func tellProblems(w io.Writer, v view.View, namespace string) error {
	v.Items = slices.DeleteFunc(v.Items, func(it view.Item) bool { return view.Elsewhere(it.Metadata.Namespace, namespace) })
	for _, problem := range v.Problems {
		fmt.Fprintln(w, problem.Error())
	}
	for _, it := range v.Causes() {
		if reason, message, bad := it.Summary.Trouble(); bad {
			fmt.Fprintf(w, "%s: %s: %s\n", placed(it), reason, message)
		} else if it.Summary.OK && it.Summary.Message != "" {
			fmt.Fprintf(w, "%s: note: %s\n", placed(it), it.Summary.Message)
		}
	}
	if terminal.Needed(v).Any() {
		return errFound
	}
	return nil
}

// placed names an item, with where it stands in files.
func placed(it view.Item) string {
	if it.Place == "" {
		return it.Key()
	}
	return it.Place + ": " + it.Key()
}
