//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const limitsOfPaths = `limits:
    each: {rates: [{limit: 2, window: 24h}], counters: ["request.headers['x-tenant']"], when: "%s"}
    beside: {rates: [{limit: 2, window: 24h}], counters: ["request.headers['x-tenant']"], when: "request.path.startsWith('/beside')"}
    shared: {scope: Global, onFailure: Deny, rates: [{limit: 2, window: 24h}], when: "request.path.startsWith('/shared')"}
    watched: {scope: Global, shadow: true, rates: [{limit: 1, window: 24h}], when: "request.path.startsWith('/watched')"}%s`

// TestLimitsWhen protects that limits count the requests that they are for and leave all others
// alone: by files, with the real Envoy and the service that counts, and with no listener changed.
func TestLimitsWhen(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	const home = "http://home.example"
	answered := func(when, path, tenant string, want ...int) {
		t.Helper()
		for i, status := range want {
			if got := s.asTenant(t, home+path, tenant); got != status {
				t.Errorf("%s, request %d of tenant %q to %s is answered %d, want %d", when, i, tenant, path, got, status)
			}
		}
	}
	const passes, over = http.StatusOK, http.StatusTooManyRequests
	listeners := s.envoyStats(t, "listener_manager")
	written := func(when, more string) {
		t.Helper()
		s.write(t, "limits.yaml", limitPolicy("paths", onHome, fmt.Sprintf(limitsOfPaths, when, more)))
	}
	written("request.path.startsWith('/local')", "")
	s.says(t, "RateLimitPolicy paths", "All rules of the policy are in force")
	if out, err := s.run("policies", s.dir, "--effective", "httproute/"+siteNamespace+"/home", "-o", "yaml"); err != nil || !strings.Contains(out, "when: request.path.startsWith('/shared')") {
		t.Errorf("what is in force doesn't tell of which requests: %v\n%s", err, out)
	}
	for _, path := range []string{"/", "/shared", "/watched", "/local", "/beside"} {
		want := []int{passes, passes, passes}
		if path == "/shared" || path == "/local" || path == "/beside" {
			want[2] = over
		}
		answered("at first", path, "a", want...)
	}
	answered("a path that no limit is for", "/", "a", passes, passes, passes)
	answered("another tenant", "/local", "b", passes)
	const shadowed = `gatehouse_limits_shadowed_total{gateway="site/gw",limit="site/paths/watched on HTTPRoute site/home#0"} 2`
	if _, metrics, err := s.get("/metrics"); err != nil || !strings.Contains(metrics, shadowed) {
		t.Errorf("%d of 3 requests would not be refused in the shadow: %v\n%s", 1, err, linesWith(metrics, "gatehouse_limits"))
	}

	// An edit of an expression refills nothing, neither its own limit nor another, nor does one of a route
	// beside it. One that can't be read costs its limit alone.
	written("request.path.startsWith('/lo')", "")
	eventually(t, siteTimeout, func() error {
		if got := s.asTenant(t, home+"/lot", "a"); got != over {
			return fmt.Errorf("a path that the limit is for now is answered %d", got)
		}
		return nil
	})
	answered("after an edit of the expression", "/local", "a", over)
	answered("after it, another tenant", "/lot", "b", passes, over)
	for _, path := range []string{"/shared", "/beside"} {
		answered("after an edit of another limit's expression", path, "a", over)
	}
	for _, backend := range []string{"v1", "v2"} {
		s.write(t, "aside.yaml", siteRoute("aside", "aside.example", backend))
		s.serves(t, "aside.example", backend)
	}
	for _, path := range []string{"/shared", "/beside", "/local"} {
		answered("after edits of another route", path, "a", over)
	}
	written("request.path.startsWith('/lo')", "\n    odd: {rates: [{limit: 1, window: 1h}], when: request.pth == '/'}")
	s.says(t, "RateLimitPolicy paths", "spec.limits[odd].when is no condition on a request: column 9: request.")
	answered("beside a limit that is broken", "/local", "a", over)
	answered("where only the broken one is", "/", "a", passes, passes)
	if err := sameStats(listeners, s.envoyStats(t, "listener_manager"), "listener_manager.listener_added", "listener_manager.listener_modified",
		"listener_manager.listener_removed", "listener_manager.listener_in_place_updated"); err != nil {
		t.Error(err)
	}

	// While nobody counts, who is not to be counted passes.
	s.kill()
	answered("while nobody counts", "/shared", "a", http.StatusServiceUnavailable)
	answered("while nobody counts", "/", "a", passes)
	answered("while nobody counts", "/watched", "a", http.StatusServiceUnavailable)
}

// TestTokenLimitWhen protects that an answer is paid by whom its request was, also where the way to
// the service has made something else of the request by then.
func TestTokenLimitWhen(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{"model.yaml": httpBackend.leading(siteNamespace, "model", usageServer(t)) + siteRules("model", "model.example", `
  - matches: [{path: {value: /paid}}]
    filters:
    - {type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /v1}}}
    - {type: RequestHeaderModifier, requestHeaderModifier: {remove: [x-tenant]}}
    backendRefs: [{name: model, port: 8080}]
  - matches: [{path: {value: /free}}]
    filters:
    - {type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /paid}}}
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-tenant, value: a}]}}
    backendRefs: [{name: model, port: 8080}]`)})
	s.write(t, "limits.yaml", limitPolicy("tokens", onGateway, `limits:
    all:
      cost: {tokens: usage.total_tokens}
      rates: [{limit: 200, window: 24h}]
      when: "request.path.startsWith('/paid') && request.headers['x-tenant'] == 'a'"`))
	s.says(t, "RateLimitPolicy tokens", "All rules of the policy are in force")
	const model = "http://model.example"
	remaining := func(path, tenant string) string {
		t.Helper()
		o := s.answer(t, model+path, tenant, nil)
		if o.status != http.StatusOK {
			t.Errorf("tenant %q at %s: %d", tenant, path, o.status)
		}
		return o.headers.Get("X-RateLimit-Remaining")
	}
	for _, not := range [][2]string{{"/free?cost=150", "a"}, {"/free?cost=150", ""}, {"/paid?cost=150", "b"}} {
		if got := remaining(not[0], not[1]); got != "" {
			t.Errorf("tenant %q at %s is counted: %s are left", not[1], not[0], got)
		}
	}
	if got := remaining("/paid?cost=150", "a"); got != "200" {
		t.Errorf("%q are left at first, want 200", got)
	}
	eventually(t, siteTimeout, func() error {
		if got := remaining("/paid?cost=0", "a"); got != "50" {
			return fmt.Errorf("%q are left, want 50", got)
		}
		return nil
	})
	// Of a request without the header nobody can tell: it is counted.
	if got := remaining("/paid?cost=0", ""); got != "50" {
		t.Errorf("without a tenant %q are left, want 50", got)
	}
}

// TestPackedAnswersAreNoted protects users from limits that silently count bytes: where a route asks
// for compressed answers, the policy says so.
func TestPackedAnswersAreNoted(t *testing.T) {
	t.Parallel()
	const asking = "\n  - filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: Accept-Encoding, value: %s}]}}]\n    backendRefs: [{name: v1, port: 8080}]"
	s := startSite(t, map[string]string{"model.yaml": siteRules("model", "model.example", fmt.Sprintf(asking, "gzip"))})
	s.write(t, "limits.yaml", limitPolicy("tokens", onGateway, "limits: {all: {cost: {tokens: usage.total_tokens}, rates: [{limit: 200, window: 24h}]}}"))
	s.says(t, "RateLimitPolicy tokens", "HTTPRoute site/model: the header Accept-Encoding is set")
}

const bothShared = `limits:
    each: {scope: Global, onFailure: Deny, rates: [{limit: 1, window: 24h}], counters: ["request.headers['x-tenant']"]}
    all: {scope: Global, onFailure: Allow, rates: [{limit: %d, window: 24h}]}`

// TestSharedLimitsAreJudgedTogether protects that a request that one of two limits refuses is charged
// to neither, whatever they say about outages, and that clients are told of the one that is nearest.
func TestSharedLimitsAreJudgedTogether(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	const home = "http://home.example/"
	s.write(t, "limits.yaml", limitPolicy("both", onHome, fmt.Sprintf(bothShared, 3)))
	s.says(t, "RateLimitPolicy both", "All rules of the policy are in force")
	answered := func(when, tenant string, status int, limit, remaining string) {
		t.Helper()
		o := s.answer(t, home, tenant, nil)
		first, _, _ := strings.Cut(o.headers.Get("X-RateLimit-Limit"), ",")
		if got := o.headers.Get("X-RateLimit-Remaining"); o.status != status || first != limit || got != remaining {
			t.Errorf("%s: tenant %s is answered %d, of %s left %s; want %d, of %s left %s", when, tenant, o.status, first, got, status, limit, remaining)
		}
	}
	const passes, over = http.StatusOK, http.StatusTooManyRequests
	answered("the first", "a", passes, "1", "0")
	for range 5 { // which the limit for all must not pay
		answered("over its own limit", "a", over, "1", "0")
	}
	answered("another", "b", passes, "1", "0")
	answered("the last one for all", "c", passes, "1", "0")
	for range 5 { // which the limit of the tenant must not pay
		answered("over the limit for all", "d", over, "3", "0")
	}
	s.write(t, "limits.yaml", limitPolicy("both", onHome, fmt.Sprintf(bothShared, 4)))
	s.settles(t, home, "d", passes)
	answered("over both", "d", over, "1", "0")
	answered("over the limit for all again", "e", over, "4", "0")
}

// TestLimitsAddresses protects that limits count clients from some addresses, and leave all others alone.
func TestLimitsAddresses(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	// Requests come from 127.0.0.1.
	s.write(t, "limits.yaml", limitPolicy("places", onHome, `limits:
    inside: {rates: [{limit: 2, window: 24h}], counters: ["request.headers['x-tenant']"], addresses: {in: [127.0.0.0/8, 192.0.2.0/24]}}
    outside: {rates: [{limit: 1, window: 24h}], counters: ["request.headers['x-tenant']"], addresses: {in: [192.0.2.0/24]}}
    strangers: {rates: [{limit: 1, window: 24h}], counters: ["request.headers['x-tenant']"], addresses: {notIn: [127.0.0.1]}}
    some: {scope: Global, rates: [{limit: 1, window: 24h}], addresses: {in: [127.0.0.1]}, when: "request.path == '/some'"}`))
	s.says(t, "RateLimitPolicy places", "All rules of the policy are in force")
	const home = "http://home.example"
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if got := s.asTenant(t, home+"/", "a"); got != want {
			t.Errorf("request %d is answered %d, want %d", i, got, want)
		}
	}
	for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if got := s.asTenant(t, home+"/some", fmt.Sprint(i)); got != want {
			t.Errorf("request %d of those that count together is answered %d, want %d", i, got, want)
		}
	}
	s.write(t, "limits.yaml", limitPolicy("places", onHome, `limits:
    inside: {rates: [{limit: 2, window: 24h}], counters: ["request.headers['x-tenant']"], addresses: {in: [127.0.0.0/8], notIn: [127.0.0.1]}}
    odd: {rates: [{limit: 2, window: 24h}], addresses: {in: [127.0.0.300]}}`))
	s.says(t, "RateLimitPolicy places", `limits[odd].addresses.in[0] is "127.0.0.300", which is no range of addresses`)
	s.answersNow(t, home+"/", http.StatusOK)
	if got := s.asTenant(t, home+"/", "a"); got != http.StatusOK {
		t.Errorf("a client that the limit isn't for is answered %d", got)
	}
}
