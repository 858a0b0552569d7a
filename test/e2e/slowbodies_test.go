//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// TestSlowBodies protects the limits of answers that have begun: both timeouts bound the whole
// answer, also where attempts may be repeated.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	backend := httptest.NewServer(http.HandlerFunc(slowBody))
	t.Cleanup(backend.Close)
	s := startSite(t, map[string]string{"slow.yaml": httpBackend.leading(siteNamespace, "slow", backend.Listener.Addr().(*net.TCPAddr).Port) +
		siteRules("slow", "slow.example", `
- {matches: [{path: {value: /request}}], timeouts: {request: 600ms}, backendRefs: [{name: slow, port: 8080}]}
- {matches: [{path: {value: /backend}}], timeouts: {backendRequest: 600ms}, backendRefs: [{name: slow, port: 8080}]}
- {matches: [{path: {value: /both}}], timeouts: {request: 8s, backendRequest: 600ms}, backendRefs: [{name: slow, port: 8080}]}
- {matches: [{path: {value: /retry}}], timeouts: {backendRequest: 600ms}, retry: {codes: [503], attempts: 2}, backendRefs: [{name: slow, port: 8080}]}
- {matches: [{path: {value: /none}}], backendRefs: [{name: v1, port: 8080}]}`)})
	s.answers(t, "http://slow.example/none", http.StatusOK)
	for _, path := range []string{"/request", "/backend", "/both", "/retry"} {
		for _, version := range []string{"HTTP/1.1", "HTTP/2"} {
			t.Run(fmt.Sprint(path, " ", version), func(t *testing.T) {
				u := &url.URL{Scheme: "http", Host: "slow.example", Path: path}
				begun := time.Now()
				_, err := (&clientCall{method: http.MethodGet, url: u, address: s.address, http2: version == "HTTP/2"}).do(t.Context())
				took := time.Since(begun)
				if err == nil || took < 550*time.Millisecond || took > 1200*time.Millisecond {
					t.Errorf("%s, %v, want an answer that is cut after 600ms", took, err)
				}
			})
		}
	}
}

// slowBody answers at once, with a body that takes 4 seconds, over HTTP/1.1.
func slowBody(w http.ResponseWriter, r *http.Request) {
	for range 80 {
		if _, err := w.Write([]byte("tick")); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-time.After(50 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
}
