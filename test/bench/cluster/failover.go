package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

const (
	failoverRoutes  = 16 // of as many rules each, as in the public benchmark
	failoverPause   = 5 * time.Millisecond
	failoverTime    = 5 * time.Second // that the fourth endpoint is there, and then is not
	failoverPort    = 18090           // of the node, for that endpoint
	failoverRetries = 3
)

// failover sends requests to four endpoints, of which one comes and goes and refuses
// connections meanwhile, though its EndpointSlice says that it is ready: first without
// retries, then with them.
func (b *bench) failover(ctx context.Context, targets []*target) error {
	var pod corev1.Pod
	if err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "backend"}, &pod); err != nil {
		return err
	}
	node := pod.Status.HostIP
	if err := b.createFailing(ctx, node); err != nil {
		return err
	}
	for _, attempts := range []int{0, failoverRetries} {
		routes := failingRoutes(attempts, targets)
		for _, r := range routes {
			if err := b.client.Create(ctx, r); err != nil {
				return err
			}
		}
		for _, t := range targets {
			if err := b.failOver(ctx, t, node, attempts, routes); err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
		}
	}
	return nil
}

// createFailing adds endpoints to a Service: each port of the backend is one, and one
// is on the node.
func (b *bench) createFailing(ctx context.Context, node string) error {
	const name = "failing"
	if err := b.createService(ctx, name); err != nil {
		return err
	}
	for i, endpoint := range []struct {
		address string
		port    int32
	}{{b.backend, 8081}, {b.backend, 8082}, {node, failoverPort}} {
		s := b.slice(name, endpoint.address)
		s.Name = fmt.Sprintf("%s-%d", name, i+2)
		s.Ports = slices.DeleteFunc(s.Ports, func(p discoveryv1.EndpointPort) bool { return *p.Name != ports[0].name })
		s.Ports[0].Port = new(endpoint.port)
		if err := b.client.Create(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func failingRoutes(attempts int, targets []*target) []*gwv1.HTTPRoute {
	var routes []*gwv1.HTTPRoute
	for i := range failoverRoutes {
		var rules []gwv1.HTTPRouteRule
		for k := range failoverRoutes {
			rule := to(fmt.Sprintf("/%d", k), "failing", ports[0].service)
			rule.Retry = &gwv1.HTTPRouteRetry{Attempts: &attempts}
			rules = append(rules, rule)
		}
		routes = append(routes, route(fmt.Sprintf("failing-%d-%d", attempts, i), targets, rules...))
	}
	return routes
}

// failOver asks for all rules in turns while the endpoint comes and goes.
func (b *bench) failOver(ctx context.Context, t *target, node string, attempts int, routes []*gwv1.HTTPRoute) error {
	v := b.visit(t.address, nil)
	defer v.Close()
	for _, r := range routes {
		if err := cluster.Await(ctx, r.Name, func() error {
			if status, err := v.get(ctx, host(r.Name), "/0"); status == http.StatusNotFound || err != nil {
				return fmt.Errorf("it is not served: %w", err)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	requests, wrong := 0, 0
	for range b.flips {
		comes, cancel := context.WithTimeout(ctx, 2*failoverTime)
		ended, err := b.listenFor(comes, net.JoinHostPort(node, strconv.Itoa(failoverPort)))
		if err != nil {
			cancel()
			return err
		}
		for comes.Err() == nil {
			r, path := routes[requests%len(routes)], fmt.Sprintf("/%d", requests/len(routes)%failoverRoutes)
			status, err := v.get(comes, host(r.Name), path)
			if requests++; err != nil || status != http.StatusOK {
				wrong++
			}
			_ = cluster.Sleep(comes, failoverPause)
		}
		cancel()
		if err := errors.Join(ctx.Err(), <-ended); err != nil {
			return err
		}
	}
	from := b.source(failover, t)
	lead := map[int]string{0: "without_retries_", failoverRetries: "with_retries_"}[attempts]
	b.report.add(from, lead+"wrong_answers", float64(wrong))
	b.report.add(from, lead+"requests", float64(requests))
	return nil
}

// listenFor runs a backend in the cluster's network, which ends by itself.
func (b *bench) listenFor(ctx context.Context, address string) (ended <-chan error, err error) {
	cmd := exec.CommandContext(ctx, b.binary, "echo", "--listen", "four="+address, "--", "sleep", strconv.FormatFloat(failoverTime.Seconds(), 'f', -1, 64)) //nolint:gosec // who runs this names its own binary
	if err := b.cluster.Start(cmd); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	return done, nil
}
