package main

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// edits is how many changes of a route are counted.
const edits = 10

// manyProxies is a fleet whose size must not show in what the API server is asked.
const manyProxies = 20

// countProxies sees what edits of a route cost the controllers and the API server,
// with one proxy and with many.
func (b *bench) countProxies(ctx context.Context) error {
	return errors.Join(
		b.countEdits(ctx, "few", 1, runsWithOne, pushesWithOne, asksWithOne),
		b.countEdits(ctx, "many", manyProxies, runsWithMany, pushesWithMany, asksWithMany))
}

func (b *bench) countEdits(ctx context.Context, name string, proxies int32, runs, pushes, asks string) (err error) {
	parameters, reference := fleetOf(name, proxies)
	gateway, route := b.gateway(name, reference), b.route(name, name)
	for _, object := range []client.Object{parameters, gateway, route} {
		if err := b.client.Create(ctx, object); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.client.Delete(context.WithoutCancel(ctx), object)) }()
	}
	address, err := b.ready(ctx, name)
	if err != nil {
		return err
	}
	if _, err := b.fleet(ctx, name); err != nil {
		return err
	}
	if err := b.quiet(ctx); err != nil {
		return err
	}
	metrics := map[string]string{runs: "gatehouse_computations_total", pushes: "gatehouse_xds_pushes_total"}
	before := map[string]float64{}
	for figure, metric := range metrics {
		if before[figure], err = b.counted(ctx, metric); err != nil {
			return err
		}
	}
	if err := b.audit.forget(); err != nil {
		return err
	}
	for i := range edits {
		if err := b.edit(ctx, name, i); err != nil {
			return err
		}
		// The next one waits: edits that come together are pushed together.
		want := map[string]string{editHeader: fmt.Sprint(i)}
		if err := cluster.Await(ctx, "the edited route", func() error { return request(ctx, b.web, address, name, want) }); err != nil {
			return err
		}
	}
	if err := b.quiet(ctx); err != nil {
		return err
	}
	for figure, metric := range metrics {
		after, err := b.counted(ctx, metric)
		if err != nil {
			return err
		}
		b.figures[figure] = after - before[figure]
		fmt.Printf("  %g %s\n", b.figures[figure], metric)
	}
	all, err := b.audit.requests()
	if err != nil {
		return err
	}
	b.figures[asks] = count(all, func(write) bool { return true })
	return nil
}
