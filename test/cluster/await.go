package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patience is for what takes seconds.
const Patience = 3 * time.Minute

// Await calls f until it succeeds.
func Await(ctx context.Context, what string, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		if Sleep(ctx, 100*time.Millisecond) != nil {
			return fmt.Errorf("waited for %s: %w", what, err)
		}
	}
}

// Sleep pauses unless ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RemoveNamespace deletes a namespace and waits for its end.
func RemoveNamespace(ctx context.Context, c client.Client, name string) error {
	return Await(ctx, "the end of the namespace "+name, func() error {
		err := c.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil || apierrors.IsConflict(err) {
			err = errors.New("it is still there")
		}
		return err
	})
}

// Metrics are those that a pod tells at an address, by name, summed over their labels.
func (c *Cluster) Metrics(ctx context.Context, address string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Transport{DialContext: c.Dial, DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	sums := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		name, _, _ := strings.Cut(line[:at], "{")
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		sums[name] += value
	}
	return sums, lines.Err()
}
