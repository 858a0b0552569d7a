package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/fleet"
	"github.com/gatehouse-dev/gatehouse/internal/terminal"
	"github.com/gatehouse-dev/gatehouse/internal/xds"
)

type proxyConfigFlags struct {
	ask    askFlags
	output string
	diff   bool
}

// configTypes are the words for what a proxy has. Those of xDS count too.
var configTypes = map[string]envoy.Type{
	"clusters": envoy.Clusters, "endpoints": envoy.Endpoints, "secrets": envoy.Secrets, "extensions": envoy.Extensions,
	"listeners": envoy.Listeners, "scopes": envoy.Scopes, "routes": envoy.Routes,
}

func newProxyConfig() *cobra.Command {
	var f proxyConfigFlags
	types := []string{"listeners", "routes", "scopes", "clusters", "endpoints", "secrets", "extensions"}
	cmd := &cobra.Command{
		Use:   "proxy-config PROXY [" + strings.Join(types, "|") + "]",
		Short: "Show what one proxy has, and what it is to have",
		Long: `Show the configuration of one proxy, resource by resource, by what it has acknowledged:
the version that it has, the one that it is to have, and why they differ. -o yaml and json
have the resources themselves, as Envoy's documentation writes them, without keys of secrets.
--diff leaves what the proxy doesn't have as it should; with -o yaml both versions are shown.

PROXY is a pod, as 'gatehouse proxies' names it, or a Gateway that has one proxy only. Who is
asked, and by what right, is the same as for 'gatehouse proxies': nothing is asked of the
proxy itself. The exit code with --diff is 1 when something differs.`,
		Example: `  gatehouse proxy-config -n shop web-7d9c8-x2x4v
  gatehouse proxy-config -n shop web-7d9c8-x2x4v routes -o yaml
  gatehouse proxy-config web --diff`,
		Args:      usage(cobra.RangeArgs(1, 2)),
		ValidArgs: types,
		RunE:      func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "", "json or yaml (default: a table)")
	fl.BoolVar(&f.diff, "diff", false, "only what differs from what the proxy is to have")
	f.ask.define(cmd)
	complete(cmd, "output", "json", "yaml")
	return cmd
}

func (f *proxyConfigFlags) run(cmd *cobra.Command, args []string) error {
	if err := oneOf("output", f.output, "", "json", "yaml"); err != nil {
		return err
	}
	query := url.Values{"resources": {fmt.Sprint(f.output != "")}, "differing": {fmt.Sprint(f.diff)}}
	if len(args) == 2 {
		of, ok := configTypes[args[1]]
		if !ok {
			return usageError{fmt.Errorf("%q is none of %s", args[1], strings.Join(cmd.ValidArgs, ", "))}
		}
		query.Set("type", of.String())
	}
	source, err := f.ask.source(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), patience)
	defer cancel()
	tell := &told{w: cmd.ErrOrStderr()}
	proxy, at, err := findProxy(ctx, source, args[0], tell)
	if err != nil {
		return err
	}
	query.Set("gateway", proxy.Gateway)
	query.Set("pod", proxy.Pod)
	var config xds.LoadedConfig
	if err := at.ask(ctx, "/proxies/config?"+query.Encode(), &config); err != nil {
		return fmt.Errorf("%s can't be asked: %w", at.name, err)
	}
	if err := printConfig(cmd.OutOrStdout(), config, f.output); err != nil {
		return err
	}
	if len(config.Resources) == 0 && f.output == "" {
		nothing := "The proxy has nothing of that."
		if f.diff {
			nothing = "The proxy has all that it is to have."
		}
		fmt.Fprintln(cmd.ErrOrStderr(), nothing)
	}
	if f.diff && len(config.Resources) > 0 {
		return errFound
	}
	return nil
}

// findProxy returns the proxy that a name stands for, and whom it is connected to.
func findProxy(ctx context.Context, source *askSource, name string, tell *told) (proxy fleet.Proxy, at asker, err error) {
	lists, err := askAll[fleet.List](ctx, source, "/proxies", tell)
	if err != nil {
		return proxy, at, err
	}
	var pods, ofGateway []fleet.Proxy
	who := map[string]asker{} // by pod and Gateway, the younger session's
	since := map[string]fleet.Proxy{}
	for _, a := range source.askers {
		for _, p := range lists[a.name].Proxies {
			k := p.Gateway + " " + p.Pod
			if before, known := since[k]; !known || before.Connected.Before(p.Connected) {
				since[k], who[k] = p, a
			}
		}
	}
	for _, p := range since {
		_, gateway, _ := strings.Cut(p.Gateway, "/")
		switch {
		case p.Connected.IsZero() || !source.isOf(p.Gateway):
		case p.Pod != "" && p.Pod == name:
			pods = append(pods, p)
		case gateway == name || p.Gateway == name:
			ofGateway = append(ofGateway, p)
		}
	}
	if len(pods) == 0 {
		pods = ofGateway
	}
	switch len(pods) {
	case 0:
		return proxy, at, fmt.Errorf("no proxy %s is connected: `gatehouse proxies` shows those that there are", name)
	case 1:
		return pods[0], who[pods[0].Gateway+" "+pods[0].Pod], nil
	}
	var names []string
	for _, p := range pods {
		names = append(names, strings.TrimSpace(p.Gateway+" "+p.Pod))
	}
	slices.Sort(names)
	return proxy, at, errors.New("name one of these by its pod, or with --gateway NAMESPACE/NAME: " + strings.Join(names, ", "))
}

func printConfig(w io.Writer, config xds.LoadedConfig, output string) error {
	if done, err := printed(w, output, config); done {
		return err
	}
	if len(config.Resources) == 0 {
		return nil
	}
	const digits = 8 // of a version, as people compare them
	short := func(version string) string {
		if version == "" {
			return "-"
		}
		return version[:min(len(version), digits)]
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TYPE\tNAME\tWANTED\tHAS\tSTATE\t") //nolint:errcheck // Flush returns it
	for _, h := range config.Resources {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", h.Type, h.Name, short(h.Wanted), short(h.Has), h.State, terminal.Clean(h.Message)) //nolint:errcheck // likewise
	}
	return t.Flush()
}
