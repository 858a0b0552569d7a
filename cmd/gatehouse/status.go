package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/terminal"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

type statusFlags struct {
	cluster  clusterFlags
	output   string
	stateDir string
	once     bool
	paths    pathFlags
	evaluate evaluateFlags
}

func newStatus() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [KIND[/NAME]]... | --once PATH... [KIND[/NAME]]...",
		Short: "Show Gateways, routes and what is wrong with them",
		Long: `Show the state of Gateways and routes as a running 'gatehouse run' sees it, as
their status in a Kubernetes cluster tells it, or, with --once, as files on their
own would give it, without running anything.

A cluster is asked where a flag says so (--namespace, --all-namespaces, --context,
--kubeconfig), and where no 'gatehouse run' runs here. Which cluster and namespace is
decided as kubectl does it.

KIND and NAME choose: gateway, route (of any kind), httproute/web,
httproute/shop/web (with namespace); several may be given. Short names work: gw,
gc, lset.
With --once, PATH is a directory, a file or - for standard input. The flags that say
how files are evaluated are those of 'gatehouse run', and make no sense without --once.
The exit code is 1 when a file or an object that is shown has a problem, and when files
hold nothing. Of a cluster it tells no problems.`,
		Example: `  gatehouse status
  gatehouse status httproute -o wide
  gatehouse status -A
  gatehouse status -n shop gateway/web
  gatehouse status --once examples/quickstart`,
		ValidArgs: kindWords(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", f.output, "", "wide", "json", "yaml"); err != nil {
				return err
			}
			paths, wanted, err := f.arguments(cmd, args)
			if err != nil {
				return err
			}
			v, where, err := f.view(cmd, paths)
			if err != nil {
				return err
			}
			if err := choose(&v, wanted); err != nil {
				return err
			}
			if err := printView(cmd.OutOrStdout(), v, f.output); err != nil {
				return err
			}
			switch {
			case nothingIn(v) && len(wanted) == 0:
				return errors.New(nothing(wanted, where))
			case nothingIn(v) && (f.output == "" || f.output == "wide"): // as with kubectl, no failure
				fmt.Fprintln(cmd.ErrOrStderr(), nothing(wanted, where))
			case where == inFiles && terminal.Needed(v).Any():
				return errFound
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "", "wide, json or yaml (default: a table)")
	defineStateDir(cmd, &f.stateDir)
	fl.BoolVar(&f.once, "once", false, "evaluate the files of PATH, and exit")
	f.paths.define(fl)
	f.evaluate.define(fl)
	f.cluster.define(fl)
	cmd.MarkFlagsMutuallyExclusive("once", "state-dir")
	exceptCluster(cmd, "once")
	exceptCluster(cmd, "state-dir")
	complete(cmd, "output", "wide", "json", "yaml")
	return cmd
}

// arguments divides the arguments into files and what is chosen.
func (f *statusFlags) arguments(cmd *cobra.Command, args []string) (paths []string, wanted []selection, err error) {
	switch {
	case f.once:
		paths, args = f.paths.split(args)
		if len(paths) == 0 {
			return nil, nil, usageError{errors.New("--once evaluates files: name them, such as examples/quickstart, or - for standard input")}
		}
	case len(f.paths.named) > 0:
		return nil, nil, usageError{errors.New("-f: add --once to evaluate files")}
	default:
		if err := f.evaluate.withoutFiles(cmd); err != nil {
			return nil, nil, err
		}
	}
	wanted, err = parseSelections(args)
	if err != nil && !f.once && exists(args[0]) {
		err = usageError{fmt.Errorf("%s is a file or a directory: add --once to evaluate it", args[0])}
	}
	return paths, wanted, err
}

// view returns what there is to show, and where it is from, for a sentence about
// what is missing.
func (f *statusFlags) view(cmd *cobra.Command, paths []string) (v view.View, where string, err error) {
	ctx := cmd.Context()
	switch {
	case f.once:
		p, err := f.evaluate.evaluate(cmd, paths)
		if err != nil {
			return view.View{}, "", err
		}
		return withoutProxies(view.Of(p)), inFiles, nil
	case f.cluster.asked(cmd):
		return f.cluster.view(ctx)
	}
	socket, err := adminSocket(f.stateDir)
	if errors.Is(err, terminal.ErrNotRunning) && f.cluster.configured() {
		return f.cluster.view(ctx)
	}
	if err != nil {
		return view.View{}, "", err
	}
	v, err = fetchView(ctx, socket, patience)
	return v, inFiles, err
}

// patience is how long a running gatehouse may take to answer.
const patience = 10 * time.Second

func fetchView(ctx context.Context, socket string, patience time.Duration) (view.View, error) {
	return fetch[view.View](ctx, socket, "/status", patience)
}

// fetch asks the admin interface of a running process.
func fetch[T any](ctx context.Context, socket, path string, patience time.Duration) (out T, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf(
		"the gatehouse with the state directory %s runs, but has not answered within %s: it may be stopped (Ctrl-Z; fg lets it go on), or busy", filepath.Dir(socket), patience))
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gatehouse"+path, nil)
	if err != nil {
		return out, err
	}
	resp, err := client.Do(req)
	if err != nil && ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	if err != nil {
		return out, fmt.Errorf("no gatehouse runs with the state directory %s: start one with `gatehouse run DIR --state-dir %s`, or leave --state-dir out to find the one that runs (%w)",
			filepath.Dir(socket), filepath.Dir(socket), notThere(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return out, fmt.Errorf("the running gatehouse answers %s: it may be of an older version", resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("answer of the running gatehouse: %w", err)
	}
	return out, nil
}

// notThere takes the words around the reason off a network or file error: they
// are about the mechanism.
func notThere(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

// withoutProxies says "Valid" of what only waits for a proxy: without one, there is
// nothing more to know.
func withoutProxies(v view.View) view.View {
	for i := range v.Items {
		sum := &v.Items[i].Summary
		if sum.State == "Pending" {
			sum.State, sum.OK, sum.Message = "Valid", true, ""
		}
		for j := range sum.Listeners {
			if l := &sum.Listeners[j]; l.State == "Pending" {
				l.State, l.OK, l.Message = "Valid", true, ""
			}
		}
	}
	return v
}

// nothingIn reports whether there is nothing to show.
func nothingIn(v view.View) bool { return len(v.Items) == 0 && len(v.Problems) == 0 }

func printView(w io.Writer, v view.View, output string) error {
	switch output {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "yaml":
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	if !nothingIn(v) {
		terminal.PrintStatus(w, v, terminal.Wide(output == "wide"))
	}
	return nil
}
