package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// usage is of one process.
type usage struct {
	memory float64 // MiB resident
	cpu    float64 // seconds since it started
}

// usage asks every replica of the controller for its metrics.
func (b *bench) usage(ctx context.Context) (map[string]usage, error) {
	pods, err := b.controllers(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]usage{}
	for _, pod := range pods {
		u, err := b.scrape(ctx, pod)
		if err != nil {
			return nil, err
		}
		memory, ok1 := u["process_resident_memory_bytes"]
		cpu, ok2 := u["process_cpu_seconds_total"]
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("pod %s: no metrics of the process", pod.Name)
		}
		all[pod.Name] = usage{memory: memory / (1 << 20), cpu: cpu}
	}
	return all, nil
}

// counted sums a metric over all replicas of the controller.
func (b *bench) counted(ctx context.Context, metric string) (float64, error) {
	pods, err := b.controllers(ctx)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, pod := range pods {
		u, err := b.scrape(ctx, pod)
		if err != nil {
			return 0, err
		}
		n, ok := u[metric]
		if !ok {
			return 0, fmt.Errorf("pod %s has no metric %s", pod.Name, metric)
		}
		sum += n
	}
	return sum, nil
}

// scrape returns the metrics of a controller.
func (b *bench) scrape(ctx context.Context, pod corev1.Pod) (map[string]float64, error) {
	all, err := b.cluster.Metrics(ctx, fmt.Sprintf("%s:%d", pod.Status.PodIP, b.metrics))
	if err != nil {
		return nil, fmt.Errorf("metrics of pod %s: %w", pod.Name, err)
	}
	return all, nil
}

// controllers are the running pods of the controller.
func (b *bench) controllers(ctx context.Context) ([]corev1.Pod, error) {
	ns, name, _ := strings.Cut(b.controller, "/")
	var pods corev1.PodList
	if err := b.client.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{"app.kubernetes.io/component": "controller"}); err != nil {
		return nil, err
	}
	var running []corev1.Pod
	for _, pod := range pods.Items {
		if pod.Spec.ServiceAccountName == name && pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
			running = append(running, pod)
		}
	}
	if running == nil {
		return nil, fmt.Errorf("no pod of %s runs: is it installed?", b.controller)
	}
	return running, nil
}

// unstructuredOf is an object as kubectl has it: what was written, and no more.
func unstructuredOf(object client.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	return &unstructured.Unstructured{Object: fields}, nil
}
