package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// workers is how many objects are created at a time.
const workers = 16

// attachRoutes creates routes as fast as the API server takes them, deletes them, and
// sees how attachedRoutes of each Gateway follows.
func (b *bench) attachRoutes(ctx context.Context, targets []*target) error {
	var counts []*count
	for _, t := range targets {
		c, err := b.count(ctx, t)
		if err != nil {
			return err
		}
		defer c.watch.Stop()
		counts = append(counts, c)
	}
	if err := b.addMany(ctx, b.attached, targets); err != nil {
		return err
	}
	created := time.Now()
	for i, c := range counts {
		at, err := c.becomes(ctx, b.attached)
		if err != nil {
			return fmt.Errorf("%s: %w", targets[i], err)
		}
		b.report.add(b.source(attachedRoutes, targets[i]), "setup_seconds", max(0, at.Sub(created).Seconds()))
	}
	deleting := time.Now()
	if err := b.client.DeleteAllOf(ctx, &gwv1.HTTPRoute{}, client.InNamespace(loadNamespace)); err != nil {
		return err
	}
	for i, c := range counts {
		at, err := c.becomes(ctx, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", targets[i], err)
		}
		from := b.source(attachedRoutes, targets[i])
		b.report.add(from, "teardown_seconds", at.Sub(deleting).Seconds())
		b.report.add(from, "status_writes", float64(c.updates()))
	}
	return nil
}

// addMany creates that many routes, each with a Service of its own.
func (b *bench) addMany(ctx context.Context, routes int, targets []*target) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range routes {
		group.Go(func() error {
			name := many(i)
			if err := b.createService(ctx, name); err != nil {
				return err
			}
			return b.client.Create(ctx, route(name, targets, to("/0", name, 80)))
		})
	}
	return group.Wait()
}

func many(i int) string { return fmt.Sprintf("app-%d", i) }

// count follows attachedRoutes of a Gateway's first listener.
type count struct {
	watch watch.Interface

	mu     sync.Mutex
	now    int
	at     time.Time // when it became so
	writes int
}

func (b *bench) count(ctx context.Context, t *target) (*count, error) {
	w, err := b.client.Watch(ctx, &gwv1.GatewayList{}, client.InNamespace(t.key.Namespace), client.MatchingFields{"metadata.name": t.key.Name})
	if err != nil {
		return nil, err
	}
	c := &count{watch: w, now: -1}
	go func() {
		for event := range w.ResultChan() {
			if g, ok := event.Object.(*gwv1.Gateway); ok && len(g.Status.Listeners) > 0 {
				c.saw(event.Type, int(g.Status.Listeners[0].AttachedRoutes))
			}
		}
	}()
	return c, nil
}

func (c *count) saw(event watch.EventType, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if event == watch.Modified {
		c.writes++
	}
	if n != c.now {
		c.now, c.at = n, time.Now()
	}
}

func (c *count) updates() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// becomes waits until the count is right, and returns since when it is.
func (c *count) becomes(ctx context.Context, want int) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.Patience)
	defer cancel()
	for {
		c.mu.Lock()
		now, at := c.now, c.at
		c.mu.Unlock()
		if now == want {
			return at, nil
		}
		if err := cluster.Sleep(ctx, 10*time.Millisecond); err != nil {
			return time.Time{}, fmt.Errorf("attachedRoutes is %d, want %d: %w", now, want, err)
		}
	}
}
