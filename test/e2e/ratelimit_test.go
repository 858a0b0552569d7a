//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// limitPolicy is a RateLimitPolicy for a target in flow notation, with a spec behind its targets.
func limitPolicy(name, target, spec string) string {
	return strings.Replace(authPolicy(name, target, spec), "kind: AuthPolicy", "kind: RateLimitPolicy", 1)
}

// asTenant sends a request of a tenant; empty for none.
func (s *site) asTenant(t *testing.T, target, tenant string) int {
	t.Helper()
	return s.answer(t, target, tenant, nil).status
}

const (
	eachTenant = "limits: {each: {rates: [{limit: %d, window: 24h}], counters: [\"request.headers['x-tenant']\"]}%s}"
	inAll      = "limits: {all: {rates: [{limit: %d, window: 24h}]}}"
)

// TestRateLimitPolicy protects that limits hold through all that happens beside them: by files,
// with the real Envoy, and with no listener changed for it.
func TestRateLimitPolicy(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	const home, aside = "http://home.example/", "http://aside.example/"
	inForce := func(policy string) {
		t.Helper()
		s.says(t, "RateLimitPolicy "+policy, "All rules of the policy are in force") // since Envoy has acknowledged it
	}
	answered := func(when, target, tenant string, want ...int) {
		t.Helper()
		for i, status := range want {
			if got := s.asTenant(t, target, tenant); got != status {
				t.Errorf("%s, request %d of tenant %q to %s is answered %d, want %d", when, i, tenant, target, got, status)
			}
		}
	}
	over := func(when string) {
		t.Helper()
		answered(when, home, "a", http.StatusTooManyRequests)
		answered(when, home, "", http.StatusTooManyRequests)
	}
	listeners := s.envoyStats(t, "listener_manager")
	s.write(t, "limits.yaml", limitPolicy("per-tenant", onHome, fmt.Sprintf(eachTenant, 2, "")))
	inForce("per-tenant")
	for _, tenant := range []string{"a", "b", ""} {
		answered("at first", home, tenant, http.StatusOK, http.StatusOK, http.StatusTooManyRequests)
	}

	// What happens beside it refills nothing: routes, and limits in other filters.
	s.write(t, "aside.yaml", siteRoute("aside", "aside.example", "v1"))
	s.serves(t, "aside.example", "v1")
	over("after a new route")
	const beside = "beside" // on the Gateway, whose limits have a filter of their own
	s.write(t, "beside.yaml", limitPolicy(beside, onGateway, fmt.Sprintf(inAll, 1)))
	s.says(t, "RateLimitPolicy "+beside, "The policy is in force, except where others take its place") // not on home, and acknowledged
	answered("with a limit of its own", aside, "a", http.StatusOK, http.StatusTooManyRequests)
	s.write(t, "aside.yaml", siteRoute("aside", "aside.example", "v2"))
	s.write(t, "beside.yaml", limitPolicy(beside, onGateway, fmt.Sprintf(inAll, 100000)))
	s.serves(t, "aside.example", "v2")
	over("after an edit of another limit")

	// A limit that is broken costs no other, and says what it could be.
	s.write(t, "limits.yaml", limitPolicy("per-tenant", onHome, fmt.Sprintf(eachTenant, 1, ", odd: {rates: [{limit: 1, window: 1m}], counters: [client.ip]}")))
	s.says(t, "RateLimitPolicy per-tenant", `spec.limits[odd].counters[0] is "client.ip", which is no counter; use client.address`)
	s.write(t, "limits.yaml", limitPolicy("per-tenant", onHome, fmt.Sprintf(eachTenant, 3, "")))
	inForce("per-tenant")
	answered("after an edit of the limit", home, "a", http.StatusOK, http.StatusOK, http.StatusOK, http.StatusTooManyRequests)

	// A limit of a Gateway is one for all its routes.
	s.remove(t, "limits.yaml")
	s.write(t, "beside.yaml", limitPolicy("together", onGateway, fmt.Sprintf(inAll, 3)))
	inForce("together")
	answered("together", home, "a", http.StatusOK)
	answered("together", aside, "a", http.StatusOK, http.StatusOK, http.StatusTooManyRequests)
	answered("together", home, "b", http.StatusTooManyRequests)

	s.remove(t, "beside.yaml")
	s.serves(t, "home.example", "v1")
	if err := sameStats(listeners, s.envoyStats(t, "listener_manager"), "listener_manager.listener_added", "listener_manager.listener_modified",
		"listener_manager.listener_removed", "listener_manager.listener_in_place_updated"); err != nil {
		t.Error(err)
	}
}
