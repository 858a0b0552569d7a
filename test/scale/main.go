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
	"time"

	"github.com/gatehouse-dev/gatehouse/test/bars"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// scenarios are what is measured, in order: idle needs the routes.
var scenarios = []struct {
	name string
	run  func(*bench, context.Context) error
}{
	{"routes", (*bench).createRoutes},
	{"apply", (*bench).applyAgain},
	{"idle", (*bench).idle},
	{"kill", (*bench).killControllers},
	{"leader", (*bench).killLeader},
	{"rollout", (*bench).restartFleet},
	{"proxies", (*bench).countProxies},
}

// run is main with an error.
func run(ctx context.Context) error {
	var o options
	var only string
	flag.StringVar(&o.class, "class", "gatehouse", "GatewayClass of the Gateways that are made")
	flag.StringVar(&o.controller, "controller", "gatehouse-system/gatehouse", "Deployment and ServiceAccount of the controller")
	flag.IntVar(&o.metrics, "metrics", 8080, "port of the controller's metrics")
	flag.IntVar(&o.routes, "routes", 1000, "HTTPRoutes to create")
	flag.IntVar(&o.rate, "rate", 200, "requests per second while something ends")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long nothing happens, to see what is written and used")
	flag.StringVar(&o.image, "backend", "registry.k8s.io/gateway-api/conformance/echo-basic:v0.2.0", "image of the backend")
	flag.StringVar(&only, "only", "", "scenarios, with commas between; all if empty")
	flag.StringVar(&o.lease, "lease", "gatehouse-leader", "Lease of the controller that leads")
	enforced := bars.Enforced(flag.CommandLine)
	flag.StringVar(&o.record, "record", bars.File("04"), "file of the bars' figures")
	flag.Parse()
	ran, err := bars.Chosen(only, names())
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}

	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Println("setting up")
	if err := b.setUp(ctx); err != nil {
		return errors.Join(err, b.tearDown())
	}
	for _, s := range scenarios {
		if !slices.Contains(ran, s.name) {
			continue
		}
		fmt.Println(s.name)
		if err := s.run(b, ctx); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.name, err), b.tearDown())
		}
	}
	return errors.Join(b.tearDown(), bars.Judge(os.Stdout, b.record, bars.Here(ctx), judged(b.figures, ran), *enforced))
}

// names are those of all scenarios.
func names() (all []string) {
	for _, s := range scenarios {
		all = append(all, s.name)
	}
	return all
}
