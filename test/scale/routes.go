package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// settle is how long the controller may take to notice that there is something
// to write, before it counts as not written.
const settle = 10 * time.Second

// createRoutes creates all routes as fast as the API server takes them, and sees
// how the Gateway's status follows.
func (b *bench) createRoutes(ctx context.Context) error {
	if err := b.audit.forget(); err != nil {
		return err
	}
	w, err := b.client.Watch(ctx, &gwv1.GatewayList{}, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	defer w.Stop()
	want := int32(b.routes + 1)
	attached := make(chan time.Time, 1)
	go func() {
		for event := range w.ResultChan() {
			g, ok := event.Object.(*gwv1.Gateway)
			if ok && event.Type != watch.Deleted && len(g.Status.Listeners) == 1 && g.Status.Listeners[0].AttachedRoutes == want {
				attached <- time.Now()
				return
			}
		}
	}()

	started := time.Now()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range b.routes {
		group.Go(func() error { return b.client.Create(ctx, b.route(fmt.Sprintf("route-%d", i), "one")) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	created := time.Now()
	fmt.Printf("  %d routes created in %v\n", b.routes, created.Sub(started).Round(time.Millisecond))
	select {
	case at := <-attached:
		b.figures[attachedDelay] = max(0, at.Sub(created).Seconds())
	case <-time.After(cluster.Patience):
		return fmt.Errorf("attachedRoutes is not %d after %v", want, cluster.Patience)
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := b.quiet(ctx); err != nil {
		return err
	}
	all, err := b.audit.writes()
	if err != nil {
		return err
	}
	b.figures[gatewayWrites] = count(all, func(w write) bool { return w.resource == "gateways" })
	count(all, func(w write) bool { return w.resource != "gateways" })
	return cluster.Await(ctx, "the last route", func() error { return b.get(ctx, b.address, fmt.Sprintf("route-%d", b.routes-1)) })
}

// quiet waits until the controller has written nothing for a while.
func (b *bench) quiet(ctx context.Context) error {
	for before := -1; ; {
		all, err := b.audit.writes()
		if err != nil {
			return err
		}
		n := 0
		for _, times := range all {
			n += times
		}
		if n == before {
			return nil
		}
		before = n
		if err := cluster.Sleep(ctx, settle); err != nil {
			return err
		}
	}
}

// applyAgain applies every route twice as `kubectl apply --server-side` does. The
// first time changes who manages their fields, the second nothing at all.
func (b *bench) applyAgain(ctx context.Context) error {
	if err := b.audit.forget(); err != nil {
		return err
	}
	for range 2 {
		var group errgroup.Group
		group.SetLimit(16)
		for i := range b.routes {
			group.Go(func() error {
				route, err := unstructuredOf(b.route(fmt.Sprintf("route-%d", i), "one"))
				if err != nil {
					return err
				}
				return b.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(route), client.FieldOwner("kubectl"), client.ForceOwnership)
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if err := cluster.Sleep(ctx, settle); err != nil {
			return err
		}
	}
	all, err := b.audit.writes()
	if err != nil {
		return err
	}
	b.figures[applyWrites] = count(all, func(write) bool { return true })
	return nil
}

// idle sees what the controller writes and uses while nothing happens, and what
// memory it has.
func (b *bench) idle(ctx context.Context) error {
	if err := b.quiet(ctx); err != nil {
		return err
	}
	if err := b.audit.forget(); err != nil {
		return err
	}
	before, err := b.usage(ctx)
	if err != nil {
		return err
	}
	started := time.Now()
	if err := cluster.Sleep(ctx, b.options.idle); err != nil {
		return err
	}
	after, err := b.usage(ctx)
	if err != nil {
		return err
	}
	elapsed := time.Since(started).Seconds()
	for pod, u := range after {
		cpu := (u.cpu - before[pod].cpu) / elapsed
		fmt.Printf("  %s: %.1f MiB resident, %.4f cores\n", pod, u.memory, cpu)
		b.figures[idleCPU] = max(b.figures[idleCPU], cpu)
		b.figures[residentMemory] = max(b.figures[residentMemory], u.memory)
	}
	all, err := b.audit.writes()
	if err != nil {
		return err
	}
	b.figures[idleWrites] = count(all, func(write) bool { return true })
	return nil
}
