package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/gatehouse-dev/gatehouse/test/bars"
	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench-cluster:", err)
		os.Exit(1)
	}
}

// shapes are what is measured, in order.
var shapes = []struct {
	name string
	run  func(*bench, context.Context, []*target) error
}{
	{attachedRoutes, (*bench).attachRoutes},
	{propagation, (*bench).propagate},
	{propagationNew, (*bench).propagateNew},
	{routeChange, (*bench).changeRoute},
	{scale, (*bench).changeAtScale},
	{listenerSets, (*bench).addListenerSets},
	{failover, (*bench).failover},
}

// run is main with an error.
func run(ctx context.Context) error {
	var o options
	var gateways, only string
	var plotOnly bool
	flag.StringVar(&gateways, "gateways", "", "Gateways that are there, as namespace/name with commas between; each must let routes and ListenerSets of all namespaces attach to its only listener. One is made if empty")
	flag.StringVar(&o.mode, "mode", joined, "joined: all Gateways at once, each route attached to all; split: one after the other")
	flag.StringVar(&o.class, "class", "gatehouse", "GatewayClass of the Gateway that is made")
	flag.StringVar(&o.controller, "controller", "gatehouse-system/app.kubernetes.io/component=controller", "namespace/label of the controller's pods")
	flag.IntVar(&o.metrics, "metrics", 8080, "port of the controller's metrics")
	flag.StringVar(&o.image, "backend", "ghcr.io/gatehouse-dev/gatehouse:bench", "image with gatehouse, for the backend")
	flag.IntVar(&o.shardAbove, "shard-above", -1, "envoy.shardAbove of the Gateway that is made; its default if negative")
	flag.IntVar(&o.attached, "attached", 1000, "routes of attached-routes")
	flag.IntVar(&o.routes, "routes", 3000, "routes of propagation, added one after another")
	flag.IntVar(&o.scale, "scale", 5000, "routes that are there during the changes of scale")
	flag.IntVar(&o.changes, "changes", 300, "changes that are counted there")
	flag.IntVar(&o.probes, "probes", 100, "routes that are added there during other changes")
	flag.IntVar(&o.iterations, "iterations", 20, "changes of route-change")
	flag.IntVar(&o.sets, "listenersets", 50, "ListenerSets of listenersets, of 16 routes each")
	flag.IntVar(&o.flips, "flips", 5, "how often an endpoint of failover comes and goes")
	flag.StringVar(&o.binary, "gatehouse", "bin/gatehouse", "the program, for the endpoint of failover that comes and goes")
	flag.StringVar(&only, "only", "", "shapes, with commas between; all if empty")
	enforced := bars.Enforced(flag.CommandLine)
	flag.StringVar(&o.record, "record", bars.File("07"), "file of the bars' figures")
	flag.StringVar(&o.results, "results", "bench/results/cluster.json", "file of all figures and samples; those of other shapes, modes and Gateways are kept")
	flag.StringVar(&o.plots, "plots", "bench/results", "directory of the plots")
	flag.StringVar(&o.page, "page", "docs/reference/benchmark.md", "page whose table of figures is made anew; none if empty")
	flag.BoolVar(&plotOnly, "plot", false, "measure nothing: make plots and table of the results that are there")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if o.mode != joined && o.mode != split {
		return fmt.Errorf("-mode: %q is neither %s nor %s", o.mode, joined, split)
	}
	if plotOnly {
		r, err := read(o.results)
		if err != nil {
			return err
		}
		return r.publish(o)
	}
	ran, err := bars.Chosen(only, names())
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	b, err := newBench(o)
	if err != nil {
		return err
	}
	measured := b.measure(ctx, gateways, ran)
	if err := errors.Join(measured, b.tearDown()); err != nil {
		return err
	}
	return b.conclude(bars.Here(context.WithoutCancel(ctx)), ran, *enforced)
}

// measure runs the shapes that were asked for, with all Gateways at once or with one
// after the other.
func (b *bench) measure(ctx context.Context, gateways string, ran []string) error {
	fmt.Println("setting up")
	targets, err := b.setUp(ctx, gateways)
	if err != nil {
		return err
	}
	groups := [][]*target{targets}
	if b.mode == split {
		groups = nil
		for _, t := range targets {
			groups = append(groups, []*target{t})
		}
	}
	for _, group := range groups {
		for _, s := range shapes {
			if !slices.Contains(ran, s.name) {
				continue
			}
			fmt.Println(s.name)
			err := b.makeLoad(ctx)
			if err == nil {
				err = s.run(b, ctx, group)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if err := cluster.RemoveNamespace(ctx, b.client, loadNamespace); err != nil {
				return err
			}
		}
	}
	return nil
}

// names are those of all shapes.
func names() (all []string) {
	for _, s := range shapes {
		all = append(all, s.name)
	}
	return all
}
