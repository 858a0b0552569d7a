package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// betweenChanges is the public benchmark's grace period.
const betweenChanges = 200 * time.Millisecond

// changeRoute turns a route from one port of a Service to the other and back, with a
// filter every other time, while a client asks without pause. Any answer but 200 is
// wrong.
func (b *bench) changeRoute(ctx context.Context, targets []*target) error {
	r := route("route", targets, to("/", "backend", 80))
	if err := b.client.Create(ctx, r); err != nil {
		return err
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	defer group.Wait()
	requests, wrong := make([]int, len(targets)), make([]int, len(targets))
	for i, t := range targets {
		v := b.visit(t.address, nil)
		defer v.Close()
		if _, _, err := v.served(ctx, host(r.Name), "/"); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		group.Go(func() {
			for asking.Err() == nil {
				status, err := v.get(ctx, host(r.Name), fmt.Sprintf("/%d", requests[i]))
				if requests[i]++; err != nil || status != http.StatusOK {
					wrong[i]++
				}
			}
		})
	}
	for i := range b.iterations {
		rule := to("/", "backend", 8080)
		if i%2 == 0 {
			rule = to("/", "backend", 80, setsHeader("my-added-header"))
		}
		if err := b.patch(ctx, r, rule); err != nil {
			stop()
			return err
		}
		if err := cluster.Sleep(ctx, betweenChanges); err != nil {
			return err
		}
	}
	stop()
	group.Wait()
	for i, t := range targets {
		from := b.source(routeChange, t)
		b.report.add(from, "wrong_answers", float64(wrong[i]))
		b.report.add(from, "requests", float64(requests[i]))
	}
	return nil
}

// patch gives a route other rules.
func (b *bench) patch(ctx context.Context, r *gwv1.HTTPRoute, rules ...gwv1.HTTPRouteRule) error {
	text, err := json.Marshal(map[string]any{"spec": map[string]any{"rules": rules}})
	if err != nil {
		return err
	}
	changed := &gwv1.HTTPRoute{}
	changed.Namespace, changed.Name = r.Namespace, r.Name
	return b.client.Patch(ctx, changed, client.RawPatch(types.MergePatchType, text))
}
