package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// propagate adds routes to one Service, one after another, each until it is served.
func (b *bench) propagate(ctx context.Context, targets []*target) error {
	return b.addOneByOne(ctx, propagation, targets, b.routes, func(int) (string, error) { return "backend", nil })
}

// propagateNew does it with a brand-new Service for each.
func (b *bench) propagateNew(ctx context.Context, targets []*target) error {
	return b.addOneByOne(ctx, propagationNew, targets, b.routes, b.newService(ctx))
}

func (b *bench) newService(ctx context.Context) func(int) (string, error) {
	return func(i int) (string, error) {
		name := fmt.Sprintf("service-%d", i)
		return name, b.createService(ctx, name)
	}
}

// addOneByOne measures from the answer of the API server until each Gateway serves
// the route. The next one waits for all of them, as in the public benchmark.
func (b *bench) addOneByOne(ctx context.Context, shape string, targets []*target, routes int, service func(int) (string, error)) error {
	visitors, samples, wrong := make([]*visitor, len(targets)), make([][]float64, len(targets)), make([]int, len(targets))
	for i, t := range targets {
		visitors[i] = b.visit(t.address, nil)
		defer visitors[i].Close()
	}
	for n := range routes {
		name, err := service(n)
		if err != nil {
			return err
		}
		r := probe(n, name, targets)
		if err := b.client.Create(ctx, r); err != nil {
			return err
		}
		created := time.Now()
		errs := make([]error, len(targets))
		var group sync.WaitGroup
		for i, v := range visitors {
			group.Go(func() {
				at, w, err := v.served(ctx, host(r.Name), fmt.Sprintf("/%d", n))
				samples[i] = append(samples[i], milliseconds(at.Sub(created)))
				wrong[i] += w
				errs[i] = err
			})
		}
		group.Wait()
		for i, err := range errs {
			if err != nil {
				return fmt.Errorf("%s: %w", targets[i], err)
			}
		}
	}
	for i, t := range targets {
		b.report.addSamples(b.source(shape, t), samples[i])
		b.report.add(b.source(shape, t), "wrong_answers", float64(wrong[i]))
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
