package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// changeAtScale makes changes at many routes: one after another, while the controller's
// CPU is counted, and then at the public benchmark's pace, while other routes are added.
func (b *bench) changeAtScale(ctx context.Context, targets []*target) error {
	if err := b.addMany(ctx, b.scale, targets); err != nil {
		return err
	}
	visitors := make([]*visitor, len(targets))
	for i, t := range targets {
		visitors[i] = b.visit(t.address, nil)
		defer visitors[i].Close()
		for n := range b.scale {
			if _, _, err := visitors[i].served(ctx, host(many(n)), "/0"); err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
		}
	}
	if err := b.countCPU(ctx, targets, visitors); err != nil {
		return err
	}
	churning, stop := context.WithCancel(ctx)
	churned := make(chan error, 1)
	go func() { churned <- b.churn(churning) }()
	err := b.addOneByOne(ctx, propagationChurn, targets, b.probes, func(int) (string, error) { return "backend", nil })
	stop()
	if failed := <-churned; failed != nil {
		return failed
	}
	return err
}

// countCPU edits one route after another, each until it is served, and says what an
// edit takes of the controller: all of its CPU, requests to the API server included.
func (b *bench) countCPU(ctx context.Context, targets []*target, visitors []*visitor) error {
	if err := b.quiet(ctx); err != nil {
		return err
	}
	before, err := b.usage(ctx)
	if err != nil {
		return err
	}
	samples := make([][]float64, len(targets))
	for n := range b.changes {
		name := many(rand.IntN(b.scale)) //nolint:gosec // nobody need not guess it
		path := fmt.Sprintf("/edit-%d", n)
		if err := b.patch(ctx, route(name, nil), to(path, name, 80)); err != nil {
			return err
		}
		patched := time.Now()
		for i, v := range visitors {
			at, _, err := v.served(ctx, host(name), path)
			if err != nil {
				return fmt.Errorf("%s: %w", targets[i], err)
			}
			samples[i] = append(samples[i], milliseconds(at.Sub(patched)))
		}
	}
	if err := b.quiet(ctx); err != nil {
		return err
	}
	after, err := b.usage(ctx)
	if err != nil {
		return err
	}
	for i, t := range targets {
		from := b.source(scale, t)
		b.report.addSamples(from, samples[i])
		b.report.add(from, "controller_cpu_ms", (after.cpu-before.cpu)*1000/float64(b.changes))
		b.report.add(from, "controller_rss_mib", after.memory)
	}
	return nil
}

// churn makes changes at the pace of the public benchmark until ctx ends: an edit of a
// route a second, and another endpoint of a Service every two.
func (b *bench) churn(ctx context.Context) error {
	asking := context.WithoutCancel(ctx) // a request under way is finished
	for n := 0; cluster.Sleep(ctx, 2*time.Second/3) == nil; n++ {
		name := many(rand.IntN(b.scale)) //nolint:gosec // nobody need not guess it
		if n%3 < 2 {
			if err := b.patch(asking, route(name, nil), to(fmt.Sprintf("/churn-%d", n), name, 80)); err != nil {
				return err
			}
			continue
		}
		s := b.slice(name, b.backend)
		s.Ports[0].Port = new(ports[1].target)
		if err := b.client.Update(asking, s); err != nil {
			return err
		}
	}
	return nil
}
