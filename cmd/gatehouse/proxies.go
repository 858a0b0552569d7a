package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gatehouse-dev/gatehouse/internal/fleet"
	"github.com/gatehouse-dev/gatehouse/internal/infra"
	"github.com/gatehouse-dev/gatehouse/internal/terminal"
)

type proxiesFlags struct {
	ask    askFlags
	output string
	watch  bool
}

func newProxies() *cobra.Command {
	var f proxiesFlags
	cmd := &cobra.Command{
		Use:   "proxies [-n NAMESPACE | -A] [--gateway [NAMESPACE/]NAME]",
		Short: "Show each proxy: what it has, what it lacks, what it refuses",
		Long: `Show the proxies of Gateways: since when each is connected, a hash of the
configuration that it is to have and of what it has, and what it refuses, with the
object that this is made of. The state is one of Current, Updating, Draining, and of
those to look into: Refused, Behind (for over a minute), Disconnected, NotReady, and
LastGood, for one that goes on with a good version of what another proxy has refused.

In a cluster all controllers are asked, over connections as 'kubectl port-forward'
makes them: who asks needs the right to list pods and to create pods/portforward in
the controllers' namespace. The right to list pods in the fleets' namespaces adds
nodes, zones, readiness, and the proxies that are not connected. Nothing is written.
Controllers that run elsewhere are named with --controller.

Without a flag for a cluster the 'gatehouse run' that runs here is asked. The exit
code is 1 then when a proxy is not well; of a cluster it tells nothing of that.`,
		Example: `  gatehouse proxies -A
  gatehouse proxies -n shop --gateway web -o wide
  gatehouse proxies -A -w`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "", "wide, json or yaml (default: a table)")
	fl.BoolVarP(&f.watch, "watch", "w", false, "go on, and print the rows that change")
	f.ask.define(cmd)
	complete(cmd, "output", "wide", "json", "yaml")
	return cmd
}

// askInterval is how often proxies are asked about while changes are shown.
const askInterval = 500 * time.Millisecond

func (f *proxiesFlags) run(cmd *cobra.Command) error {
	if err := oneOf("output", f.output, "", "wide", "json", "yaml"); err != nil {
		return err
	}
	source, err := f.ask.source(cmd)
	if err != nil {
		return err
	}
	out, errs := cmd.OutOrStdout(), &told{w: cmd.ErrOrStderr()}
	list, err := f.proxies(cmd.Context(), source, errs)
	if err != nil {
		return err
	}
	if !f.watch {
		if err := printProxies(out, list, f.output); err != nil {
			return err
		}
		if len(list) == 0 && f.output != "json" && f.output != "yaml" {
			fmt.Fprintln(cmd.ErrOrStderr(), "There are no proxies.")
		}
		if source.client == nil && slices.ContainsFunc(list, func(p fleet.Proxy) bool { return !p.State.IsWell() }) {
			return errFound
		}
		return nil
	}
	print := rowPrinter(out, f.output)
	shown := map[string]fleet.Proxy{}
	tick := time.NewTicker(askInterval)
	defer tick.Stop()
	for {
		if err := print(changedProxies(shown, list)); err != nil {
			return err
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-tick.C:
		}
		next, err := f.proxies(cmd.Context(), source, errs)
		if err != nil {
			if cmd.Context().Err() == nil {
				errs.tell(err.Error())
			}
			continue
		}
		list = next
	}
}

// changedProxies returns those that differ from what was shown, and those that are gone.
func changedProxies(shown map[string]fleet.Proxy, list []fleet.Proxy) (changed []fleet.Proxy) {
	now := map[string]bool{}
	for _, p := range list {
		k := p.Gateway + " " + p.Pod
		now[k] = true
		before, known := shown[k]
		if !known || !before.Same(&p) {
			changed = append(changed, p)
		}
		shown[k] = p
	}
	for k, p := range shown {
		if !now[k] {
			delete(shown, k)
			p.State, p.Draining = fleet.Gone, false
			changed = append(changed, p)
		}
	}
	return changed
}

// proxies asks all controllers, and for the pods, which may be in a namespace that only controllers know.
func (f *proxiesFlags) proxies(ctx context.Context, from *askSource, tell *told) ([]fleet.Proxy, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers, err := askAll[fleet.List](ctx, from, "/proxies", tell)
	if err != nil {
		return nil, err
	}
	var pods []fleet.Pod
	if from.client != nil {
		places := infra.Places{Former: []string{infra.OfGateways}}
		for _, list := range answers {
			places.Namespace = cmp.Or(places.Namespace, list.Namespace)
		}
		if pods, err = fleetPods(ctx, from.client, from.namespace, places); err != nil && ctx.Err() == nil {
			tell.tell(fmt.Sprintf("Nodes, readiness and proxies that are not connected are not shown: %v", err))
		}
	}
	list := fleet.Join(slices.Collect(maps.Values(answers)), pods)
	return slices.DeleteFunc(list, func(p fleet.Proxy) bool { return !from.isOf(p.Gateway) }), nil
}

// fleetPods reads the pods of the fleets of Gateways in a namespace; empty stands for all.
func fleetPods(ctx context.Context, client kubernetes.Interface, namespace string, places infra.Places) (out []fleet.Pod, err error) {
	in := []string{namespace}
	if elsewhere := places.Namespace; elsewhere != "" && namespace != "" && elsewhere != namespace {
		in = append(in, elsewhere)
	}
	for _, namespace := range in {
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: infra.ProxySelector})
		if err != nil {
			return nil, err
		}
		for i := range pods.Items {
			if pod, ok := fleet.PodOf(&pods.Items[i], places); ok {
				out = append(out, pod)
			}
		}
	}
	return out, nil
}

func printProxies(w io.Writer, list []fleet.Proxy, output string) error {
	if done, err := printed(w, output, map[string]any{"proxies": list}); done {
		return err
	}
	terminal.NewProxyPrinter(w, terminal.Wide(output == "wide")).Print(list)
	return nil
}

// rowPrinter prints proxies as they change: rows, or a document for each.
func rowPrinter(w io.Writer, output string) func([]fleet.Proxy) error {
	table := terminal.NewProxyPrinter(w, terminal.Wide(output == "wide"))
	return func(list []fleet.Proxy) error {
		if output == "" || output == "wide" {
			table.Print(list)
			return nil
		}
		for _, p := range list {
			if err := printDocument(w, output, p); err != nil {
				return err
			}
		}
		return nil
	}
}
