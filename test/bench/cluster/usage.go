package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/test/cluster"
)

// usage is of all pods of the controller together.
type usage struct {
	memory float64 // MiB resident
	cpu    float64 // seconds since they started
}

// usage asks the controller for its metrics, by the names that Prometheus' clients
// give them in every language.
func (b *bench) usage(ctx context.Context) (usage, error) {
	var sum usage
	ns, label, _ := strings.Cut(b.controller, "/")
	selector, err := labels.Parse(label)
	if err != nil {
		return sum, fmt.Errorf("-controller: %w", err)
	}
	var pods corev1.PodList
	if err := b.client.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return sum, err
	}
	seen := 0
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
			continue
		}
		seen++
		metrics, err := b.cluster.Metrics(ctx, fmt.Sprintf("%s:%d", pod.Status.PodIP, b.metrics))
		if err != nil {
			return sum, fmt.Errorf("metrics of pod %s: %w", pod.Name, err)
		}
		sum.memory += metrics["process_resident_memory_bytes"] / (1 << 20)
		sum.cpu += metrics["process_cpu_seconds_total"]
	}
	if seen == 0 || sum.cpu == 0 || sum.memory == 0 {
		return sum, fmt.Errorf("no pod of %s tells its CPU and memory: name the controller by -controller and -metrics", b.controller)
	}
	return sum, nil
}

// quiet waits until the controller has used next to no CPU for some seconds: statuses
// are written and garbage is collected by then.
func (b *bench) quiet(ctx context.Context) error {
	const span, idle = 2 * time.Second, 0.05
	last, err := b.usage(ctx)
	if err != nil {
		return err
	}
	return cluster.Await(ctx, "a controller that is idle", func() error {
		if err := cluster.Sleep(ctx, span); err != nil {
			return err
		}
		now, err := b.usage(ctx)
		if err != nil {
			return err
		}
		used := (now.cpu - last.cpu) / span.Seconds()
		if last = now; used > idle {
			return fmt.Errorf("it uses %.2f cores", used)
		}
		return nil
	})
}
