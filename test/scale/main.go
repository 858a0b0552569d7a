package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
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
	{"kill", (*bench).killController},
	{"rollout", (*bench).restartFleet},
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
	flag.Parse()

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
		if only != "" && !slices.Contains(strings.Split(only, ","), s.name) {
			continue
		}
		fmt.Println(s.name)
		if err := s.run(b, ctx); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", s.name, err), b.tearDown())
		}
	}
	return errors.Join(b.tearDown(), b.judge())
}
