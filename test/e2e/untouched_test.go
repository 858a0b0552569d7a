//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestUntouchedClusters protects the first request to a backend. Only then does a worker of
// Envoy make its part of a cluster, out of all that came before: what the endpoints were
// earlier must not count, nor that there were none, nor a cluster of the same name.
func TestUntouchedClusters(t *testing.T) {
	t.Parallel()
	name := func(i int) string { return fmt.Sprintf("u%02d", i) }
	file := func(i int) string { return name(i) + ".yaml" }
	route := func(i int) string { return siteRoute(name(i), name(i)+".example", name(i)) }
	backend := func(i int, server string) string { return mustBackend(t, siteNamespace, name(i), server) }

	const backends = 24
	manifests := map[string]string{}
	for i := range backends {
		manifests[file(i)] = route(i) + backend(i, "v1")
	}
	s := startSite(t, manifests)
	// endpoints are those that Envoy's main thread has, which asks no worker.
	endpoints := func(i int) string {
		var found []string
		for line := range bytes.Lines(s.envoySays(t, "/clusters")) {
			if address, ok := bytes.CutSuffix(bytes.TrimSpace(line), []byte("::hostname::")); ok && bytes.Contains(line, []byte("/"+name(i)+":")) {
				found = append(found, string(address))
			}
		}
		return strings.Join(found, " ")
	}
	become := func(i int, what string, right func(string) bool) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			if now := endpoints(i); !right(now) {
				return fmt.Errorf("endpoints %q, awaited: %s", now, what)
			}
			return nil
		})
	}
	none := func(now string) bool { return now == "" }
	before := make([]string, backends)
	for i := range before {
		if before[i] = endpoints(i); before[i] == "" {
			t.Fatalf("Envoy shows no endpoint of %s", name(i))
		}
	}

	pasts := []struct {
		what string
		pass func(i int)
	}{
		{"other endpoints", func(int) {}},
		{"no endpoints", func(i int) {
			service, _, _ := strings.Cut(backend(i, "v1"), "---\napiVersion: discovery.k8s.io/v1")
			s.write(t, file(i), route(i)+service)
			become(i, "none", none)
		}},
		{"a cluster that was removed", func(i int) {
			s.remove(t, file(i))
			become(i, "none", none)
		}},
	}
	for i := range backends {
		pasts[i%len(pasts)].pass(i)
		s.write(t, file(i), route(i)+backend(i, "v2"))
	}
	for i := range backends {
		become(i, "others than "+before[i], func(now string) bool { return now != "" && now != before[i] })
		what := pasts[i%len(pasts)].what
		// Each over a connection of its own, so that more than one worker has a first one.
		for range 6 {
			var answer *outcome
			eventually(t, siteTimeout, func() (err error) {
				if answer, err = s.call("http://" + name(i) + ".example/"); err == nil && answer.status == http.StatusNotFound {
					err = errors.New("the route comes after its cluster")
				}
				return err
			})
			if err := (&expectation{Status: codes{http.StatusOK}, Backend: "v2"}).check(answer); err != nil {
				t.Errorf("%s, after %s: %v", name(i), what, err)
			}
		}
	}
}
