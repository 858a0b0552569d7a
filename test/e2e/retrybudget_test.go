//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
)

// TestRetryBudget protects a backend from retries: with a budget of none but a few,
// most requests that fail are not repeated; without a policy all of them are.
func TestRetryBudget(t *testing.T) {
	t.Parallel()
	retry := func(service string) string {
		return "- {retry: {attempts: 1, codes: [503]}, backendRefs: [{name: " + service + ", port: 8080}]}"
	}
	policy := func(percent int) string {
		return `---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackendTrafficPolicy
metadata: {name: limit, namespace: ` + siteNamespace + `}
spec:
  targetRefs: [{group: "", kind: Service, name: v1}]
  retryConstraint: {budget: {percent: ` + strconv.Itoa(percent) + `, interval: 1s}, minRetryRate: {count: 2, interval: 1s}}
`
	}
	s := startSite(t, map[string]string{
		"limited.yaml": siteRules("limited", "limited.example", retry("v1")),
		"free.yaml":    siteRules("free", "free.example", retry("v2")),
		"policy.yaml":  policy(0),
	}, "--experimental")
	s.serves(t, "limited.example", "v1")
	s.serves(t, "free.example", "v2")
	s.conditions(t, "XBackendTrafficPolicy "+siteNamespace+"/limit", "gw", "Accepted=True")

	const requests = 20
	round := 0
	arrivals := func(host, name string) int {
		round++
		key := t.Name() + strconv.Itoa(round)
		server, err := backend(name)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				o, err := s.call("http://" + host + "/?status=503&delay=300ms&key=" + key)
				if err != nil || o.status != http.StatusServiceUnavailable {
					t.Errorf("%s: %v, %v; the backend answers 503", host, o, err)
				}
			})
		}
		all.Wait()
		return server.Requests().Count(key)
	}
	if n := arrivals("free.example", "v2"); n != 2*requests {
		t.Errorf("without a policy, %d of %d attempts arrived", n, 2*requests)
	}
	if n := arrivals("limited.example", "v1"); n <= requests || n > requests+requests/2 {
		t.Errorf("with a budget of 2 retries at a time, %d attempts of %d requests arrived", n, requests)
	}
	s.write(t, "policy.yaml", policy(100))
	eventually(t, siteTimeout, func() error {
		if n := arrivals("limited.example", "v1"); n != 2*requests {
			return fmt.Errorf("with a budget of all, %d of %d attempts arrived", n, 2*requests)
		}
		return nil
	})
}
