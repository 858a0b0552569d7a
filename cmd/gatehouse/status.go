package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/standalone"
	"github.com/gatehouse-dev/gatehouse/internal/terminal"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

type statusFlags struct {
	cluster      clusterFlags
	output       string
	stateDir     string
	once         []string
	unsafe       bool
	experimental bool
}

func newStatus() *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use:   "status [KIND[/NAME]]...",
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
With --once the exit code is 1 when a file or an object has a problem.`,
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
			wanted, err := parseSelections(args)
			if err != nil {
				return err
			}
			v, where, err := f.view(cmd)
			if err != nil {
				return err
			}
			if err := choose(&v, wanted); err != nil {
				return err
			}
			if err := printView(cmd, v, f.output, wanted, where); err != nil {
				return err
			}
			if needed := terminal.Needed(v); len(f.once) > 0 && (needed.Objects > 0 || needed.Files > 0) {
				return errFound
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "", "wide, json or yaml (default: a table)")
	fl.StringVar(&f.stateDir, "state-dir", "", "state directory of the running process (default: the only one)")
	fl.StringArrayVar(&f.once, "once", nil, "evaluate this directory or file and exit; repeatable")
	fl.BoolVar(&f.experimental, "experimental", false, "with --once: read the experimental channel of the Gateway API")
	defineUnsafe(fl, &f.unsafe)
	f.cluster.define(fl)
	cmd.MarkFlagsMutuallyExclusive("once", "state-dir")
	for _, flag := range clusterFlagNames {
		cmd.MarkFlagsMutuallyExclusive("once", flag)
		cmd.MarkFlagsMutuallyExclusive("state-dir", flag)
	}
	complete(cmd, "output", "wide", "json", "yaml")
	_ = cmd.MarkFlagDirname("state-dir")
	return cmd
}

// view returns what there is to show, and where it is from, for a sentence about
// what is missing.
func (f *statusFlags) view(cmd *cobra.Command) (v view.View, where string, err error) {
	ctx := cmd.Context()
	switch {
	case len(f.once) > 0:
		p, err := standalone.Evaluate(ctx, standalone.EvaluateOptions{
			Paths: f.once, Stdin: cmd.InOrStdin(), Experimental: f.experimental, UnsafeParameters: f.unsafe,
		})
		if err != nil {
			return view.View{}, "", err
		}
		return withoutProxies(view.Of(p)), inFiles, nil
	case f.cluster.asked(cmd):
		return f.cluster.view(ctx)
	}
	dir := f.stateDir
	if dir == "" {
		dir, err = terminal.FindRunning()
		if errors.Is(err, terminal.ErrNotRunning) && f.cluster.configured() {
			return f.cluster.view(ctx)
		}
		if err != nil {
			return view.View{}, "", err
		}
	}
	if _, err := os.Stat(dir); err != nil {
		return view.View{}, "", fmt.Errorf("no gatehouse runs with the state directory %s: %w", dir, notThere(err))
	}
	v, err = fetchView(ctx, filepath.Join(dir, terminal.AdminSocket))
	return v, inFiles, err
}

func fetchView(ctx context.Context, socket string) (view.View, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gatehouse/status", nil)
	if err != nil {
		return view.View{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return view.View{}, fmt.Errorf("no gatehouse runs with the state directory %s: start one with `gatehouse run DIR --state-dir %s`, or leave --state-dir out to find the one that runs (%w)",
			filepath.Dir(socket), filepath.Dir(socket), notThere(err))
	}
	defer resp.Body.Close()
	var v view.View
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		return view.View{}, fmt.Errorf("answer of the running gatehouse: %w", err)
	}
	return v, nil
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

func printView(cmd *cobra.Command, v view.View, output string, wanted []selection, where string) error {
	w := cmd.OutOrStdout()
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
	if len(v.Items) == 0 && len(v.Problems) == 0 {
		if len(wanted) == 0 {
			return errors.New(nothing(wanted, where))
		}
		fmt.Fprintln(cmd.ErrOrStderr(), nothing(wanted, where)) // as with kubectl, no failure
		return nil
	}
	terminal.PrintStatus(w, v, terminal.Wide(output == "wide"))
	return nil
}
