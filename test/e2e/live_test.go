//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// TestEditsUnderLoad protects the traffic of a route that is being edited: it is
// switched between backends and filters every 50 ms while clients ask for it.
func TestEditsUnderLoad(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	variants := []string{
		siteRoute("home", "home.example", "v1"),
		siteRoute("home", "home.example", "v2"),
		siteRules("home", "home.example", `- matches: [{path: {type: PathPrefix, value: /}}]
  filters:
  - type: ResponseHeaderModifier
    responseHeaderModifier: {set: [{name: X-Edit, value: "on"}]}
  - type: CORS
    cors: {allowOrigins: ["*"]}
  timeouts: {request: 10s}
  backendRefs: [{name: v1, port: 8080, weight: 1}, {name: v2, port: 8080, weight: 1}]`),
	}
	l := startLoad(t, s.listener(), loadClients, func() string { return "home.example" })
	l.more(t, 50)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for i := range 80 {
		<-ticker.C
		s.write(t, "home.yaml", variants[i%len(variants)])
	}
	s.write(t, "home.yaml", variants[1])
	s.serves(t, "home.example", "v2")
	if wrong := l.end(); len(wrong) > 0 {
		t.Errorf("of %d requests, not 200: %v", l.sent.Load(), wrong)
	}
}

// TestAddsNeverAnswerWrong protects the order of updates: a route that is added
// together with its brand-new Service answers 404 and then 200, nothing between.
func TestAddsNeverAnswerWrong(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	const adds = 300
	s := startSite(t, nil)
	var current atomic.Int64
	host := func(i int64) string { return fmt.Sprintf("h%d.example", i) }
	l := startLoad(t, s.listener(), 2, func() string { return host(current.Load()) })
	for i := range int64(adds) {
		current.Store(i)
		service := fmt.Sprintf("new-%d", i)
		s.write(t, fmt.Sprintf("add-%d.yaml", i), mustBackend(t, siteNamespace, service, "v1")+siteRoute(service, host(i), service))
		s.answers(t, "http://"+host(i)+"/", http.StatusOK)
	}
	wrong := l.end()
	delete(wrong, "status 404")
	if len(wrong) > 0 {
		t.Errorf("of %d requests during %d adds, neither 404 nor 200: %v", l.sent.Load(), adds, wrong)
	}
}

// TestRemovalsUnderLoad protects requests in flight on a route that goes away
// together with its Service.
func TestRemovalsUnderLoad(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	s.write(t, "gone.yaml", mustBackend(t, siteNamespace, "gone", "v2")+siteRoute("gone", "gone.example", "gone"))
	s.serves(t, "gone.example", "v2")
	slow := make(chan *outcome, 1)
	before, err := backend("v2")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		o, err := s.call("http://gone.example/?delay=1s&key=" + t.Name())
		if err != nil {
			o = &outcome{body: []byte(err.Error())}
		}
		slow <- o
	}()
	eventually(t, siteTimeout, func() error {
		if before.Requests().Count(t.Name()) == 0 {
			return fmt.Errorf("the slow request has not arrived")
		}
		return nil
	})
	l := startLoad(t, s.listener(), loadClients, func() string { return "gone.example" })
	l.more(t, 50)
	s.remove(t, "gone.yaml")
	s.answers(t, "http://gone.example/", http.StatusNotFound)
	wrong := l.end()
	delete(wrong, "status 404")
	if len(wrong) > 0 {
		t.Errorf("of %d requests, neither 200 nor 404: %v", l.sent.Load(), wrong)
	}
	if o := <-slow; o.status != http.StatusOK {
		t.Errorf("the request in flight ended with %d: %s", o.status, clipped(o.body))
	}
}

// TestRoutesTouchNoListener protects connections: whatever a route says, Envoy's
// listeners stay as they are, and endpoints change nothing but endpoints.
func TestRoutesTouchNoListener(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	before := s.envoyStats(t, "listener_manager")
	s.write(t, "all.yaml", mustBackend(t, siteNamespace, "fresh", "v2")+siteRules("all", "all.example", `- matches: [{path: {type: PathPrefix, value: /cors}}]
  filters:
  - type: CORS
    cors: {allowOrigins: ["https://a.example"], allowCredentials: true}
  - type: RequestMirror
    requestMirror: {backendRef: {name: v1, port: 8080}}
  - type: RequestHeaderModifier
    requestHeaderModifier: {set: [{name: X-A, value: b}]}
  retry: {codes: [500], attempts: 2}
  timeouts: {request: 5s}
  backendRefs:
  - name: fresh
    port: 8080
    filters:
    - type: URLRewrite
      urlRewrite: {hostname: other.example, path: {type: ReplacePrefixMatch, replacePrefixMatch: /x}}
- backendRefs: [{name: fresh, port: 8080}]`))
	s.serves(t, "all.example", "v2")
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v2"))
	s.serves(t, "home.example", "v2")
	s.remove(t, "all.yaml")
	s.answers(t, "http://all.example/", http.StatusNotFound)
	after := s.envoyStats(t, "listener_manager")
	err := sameStats(before, after, "listener_manager.listener_added", "listener_manager.listener_modified",
		"listener_manager.listener_removed", "listener_manager.listener_in_place_updated")
	if err != nil {
		t.Error(err)
	}
}
