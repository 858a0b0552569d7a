package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/figures"
	"github.com/gatehouse-dev/gatehouse/internal/terminal"
)

type topFlags struct {
	ask      askFlags
	output   string
	sort     string
	once     bool
	interval time.Duration
}

// The interval's bounds. Proxies report every 5 s: of a shorter one each second refresh is empty.
const (
	defaultTopInterval = 10 * time.Second
	leastTopInterval   = 5 * time.Second
	mostTopInterval    = time.Hour
)

func newTop() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top [-n NAMESPACE | -A] [--gateway [NAMESPACE/]NAME] [KIND[/NAME]]...",
		Short: "Show the routes with the most requests, errors or latency",
		Long: `Show the traffic of routes over all proxies of a Gateway: requests a second, shares of
answers with 4xx and 5xx, and latencies, of which half and 99 % of the requests have less.
-o wide adds the other classes, retries, bytes where they are counted, and what went wrong.

What is shown is of the last interval. On a terminal it is refreshed until Ctrl-C;
elsewhere, and with -o json or yaml, each interval is printed after the others.
--once prints one interval, after it has passed. Latencies are estimates from the bounds of
'gatehouse_request_duration_seconds'. Requests that no route matches are a row of their own.

A namespace chooses the routes in it, and requests without a route to Gateways in it. With
--gateway it chooses the Gateway, and all routes of that are shown. KIND and NAME choose
routes: httproute/web, httproute/shop/web, grpcroute; several may be given.

Who is asked, and by what right, is the same as for 'gatehouse proxies'.`,
		Example: `  gatehouse top
  gatehouse top -A --sort errors
  gatehouse top -n shop httproute/web -o wide
  gatehouse top -A --once -o json`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.output, "output", "o", "", "table, wide, json or yaml (default: a table)")
	fl.StringVar(&f.sort, "sort", string(figures.ByRate), "rate, errors or p99: what comes first")
	fl.BoolVar(&f.once, "once", false, "print one interval, and exit")
	boundedVar(fl, &f.interval, "interval", defaultTopInterval, leastTopInterval, mostTopInterval, "what time is shown, and how often; at least 5s, since proxies report that often")
	f.ask.define(cmd)
	complete(cmd, "output", "table", "wide", "json", "yaml")
	complete(cmd, "sort", string(figures.ByRate), string(figures.ByErrors), string(figures.ByP99))
	return cmd
}

func (f *topFlags) run(cmd *cobra.Command, args []string) error {
	if err := errors.Join(
		oneOf("output", f.output, "", "table", "wide", "json", "yaml"),
		oneOf("sort", f.sort, string(figures.ByRate), string(figures.ByErrors), string(figures.ByP99)),
	); err != nil {
		return err
	}
	wanted, err := parseSelections(args)
	if err != nil {
		return err
	}
	for _, s := range wanted {
		if !strings.HasSuffix(s.kind, anyRoute) {
			return usageError{fmt.Errorf("%s is no route: name a kind of routes, such as httproute/web", s)}
		}
	}
	source, err := f.ask.source(cmd)
	if err != nil {
		return err
	}
	ctx, errs := cmd.Context(), &told{w: cmd.ErrOrStderr()}
	var meter figures.Meter
	read := func() ([]figures.Traffic, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		reports, err := askAll[figures.Report](ctx, source, "/figures", errs)
		if err != nil {
			return nil, err
		}
		list := slices.DeleteFunc(meter.Read(time.Now(), reports), func(t figures.Traffic) bool { return !shows(source, wanted, t.Of) })
		figures.Sort(list, figures.Order(f.sort))
		return list, nil
	}
	if _, err := read(); err != nil {
		return err
	}
	show, err := f.shower(cmd)
	if err != nil {
		return err
	}
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		list, err := read()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil && f.once:
			return err
		case err != nil:
			errs.tell(err.Error())
			continue
		}
		if err := show(list); err != nil {
			return err
		}
		if f.once {
			return nil
		}
	}
}

// shows reports whether what is counted of a route is to be shown.
func shows(source *askSource, wanted []selection, of figures.Of) bool {
	if len(wanted) > 0 && !slices.ContainsFunc(wanted, func(s selection) bool { return s.matches(of.Kind, of.Namespace, of.Name) }) {
		return false
	}
	if source.gateway != "" || of.Namespace == "" {
		return source.isOf(of.Gateway)
	}
	return source.namespace == "" || of.Namespace == source.namespace
}

// shower returns what shows the traffic of an interval.
func (f *topFlags) shower(cmd *cobra.Command) (func([]figures.Traffic) error, error) {
	out, wide := cmd.OutOrStdout(), terminal.Wide(f.output == "wide")
	structured := f.output == "json" || f.output == "yaml"
	if !structured && !f.once && out == io.Writer(os.Stdout) && terminal.Interactive(os.Stdout, os.Stdout) {
		screen := terminal.NewTrafficScreen(os.Stdout, wide)
		title := func(what string) string {
			return fmt.Sprintf("%s of the last %s by %s (Ctrl-C ends)", what, f.interval, f.sort)
		}
		show := func(list []figures.Traffic) error { return screen.Show(title(fmt.Sprint(len(list))+" routes"), list) }
		return show, screen.Show(title("Traffic"), nil)
	}
	first := true
	return func(list []figures.Traffic) error {
		defer func() { first = false }()
		if structured {
			return printDocument(out, f.output, map[string]any{"routes": list})
		}
		if len(list) == 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "There were no requests in the last %s.\n", f.interval)
			return nil
		}
		if !first {
			fmt.Fprintln(out)
		}
		terminal.PrintTraffic(out, list, wide)
		return nil
	}, nil
}
