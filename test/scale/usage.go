package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
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
		u, err := b.scrape(ctx, fmt.Sprintf("http://%s:%d/metrics", pod.Status.PodIP, b.metrics))
		if err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
		all[pod.Name] = u
	}
	return all, nil
}

func (b *bench) scrape(ctx context.Context, url string) (usage, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return usage{}, err
	}
	response, err := b.web.RoundTrip(r)
	if err != nil {
		return usage{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var u usage
	var bytes float64
	found := 0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		for metric, value := range map[string]*float64{"process_resident_memory_bytes": &bytes, "process_cpu_seconds_total": &u.cpu} {
			if n, _ := fmt.Sscanf(lines.Text(), metric+" %g", value); n == 1 {
				found++
			}
		}
	}
	if found != 2 {
		return usage{}, errors.New("no metrics of the process")
	}
	u.memory = bytes / (1 << 20)
	return u, nil
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
