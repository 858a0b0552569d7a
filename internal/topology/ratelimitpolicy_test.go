package topology

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/limits"
)

// limitWorld has a RateLimitPolicy p with a text behind its targets.
func limitWorld(t *testing.T, text string) *limits.Policy {
	t.Helper()
	w := newWorld(settings{}.options())
	w.set(t, decode(t, `kind: RateLimitPolicy
metadata: {name: p, namespace: default}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
`+text)...)
	var p *limits.Policy
	w.engine.View(func(c *flow.Ctx) {
		p, _ = flow.Get(c, w.graph.RateLimitPolicies, object.Name{Namespace: "default", Name: "p"})
	})
	return p
}

// A limit that is broken is left out, and costs no other. A policy of nothing else takes the
// place of none: what it would have limited has the limits that it had.
func TestBrokenLimitsAreLeftOut(t *testing.T) {
	for _, c := range []struct {
		text    string
		limits  int // -1 for a policy that says nothing
		problem string
	}{
		{"  limits: {a: {rates: [{limit: 1, window: 1s}]}, b: {rates: [{limit: 1, window: 1s}], counters: [who]}}", 1, `spec.limits[b].counters[0] is "who"`},
		{"  limits: {b: {rates: [{limit: 1, window: 1s}], counters: [who]}}", -1, `is no counter`},
		{"  overrides: {limits: {b: {rates: [{limit: 1, window: 1s}, {limit: 2, window: 1000ms}]}}}", -1, `spec.overrides.limits[b].rates[1].window is that of another rate`},
		{"  defaults: {limits: {b: {rates: [{limit: 1, window: 25h}]}}}", -1, `spec.defaults.limits[b].rates[0].window is "25h"; write a time from 1s to 24h`},
		{"  defaults: {limits: {b: {rates: [{limit: 1, window: 10ms}]}}}", -1, `is "10ms"`},
		{"  defaults: {}", -1, "spec.defaults has no limits; write some"},
		{"  overrides: {strategy: merge}", -1, "spec.overrides has no limits"},
		{"", -1, "spec has no limits"},
		{"  defaults: {limits: {a: {unlimited: {}}}}", 1, ""},
		{"  limits: {a: {unlimited: {}, rates: [{limit: 1, window: 1s}]}}", -1, "spec.limits[a].unlimited has other fields beside it"},
		{"  limits: {a: {rates: [{limit: 1, window: 1h30m}], counters: [client.address, client.address], scope: Local}}", 1, ""},
		{"  limits: {a: {rates: [{limit: 1, window: 1s}], scope: Global, onFailure: Deny, shadow: true}}", 1, ""},
		{"  limits: {a: {rates: [{limit: 1, window: 1s}], cost: {tokens: usage.total_tokens}, counters: [auth.claims.sub]}}", 1, ""},
		{"  limits: {a: {rates: [{limit: 1, window: 1s}], when: \"request.path == '/'\"}, b: {rates: [{limit: 1, window: 1s}], when: \"request.path\"}}", 1, "spec.limits[b].when is no condition on a request: column 1: the expression is of type string"},
		{"  overrides: {limits: {a: {rates: [{limit: 1, window: 1s}], scope: Global, when: \"request.path == \"}}}", -1, "spec.overrides.limits[a].when is no condition on a request: column"},
		{"  limits: {a: {rates: [{limit: 1, window: 1s}], when: \"request.pth == '/'\"}}", -1, "request.pth: there is no pth in request"},
		{"  limits: {a: {rates: [{limit: 1, window: 1s}], scope: Local, cost: {tokens: a}}}", -1, "spec.limits[a].cost needs scope: Global"},
		{"  limits: {a: {rates: [{limit: 1, window: 1s}], shadow: true}}", -1, "spec.limits[a].shadow needs scope: Global"},
		{"  limits: {a: {rates: [{limit: 1, window: 1s}], onFailure: Deny}}", -1, "spec.limits[a].onFailure needs scope: Global"},
		{"  limits: {a: {rates: [{limit: 1, window: 1s}], scope: Everywhere}}", -1, `spec.limits[a].scope is "Everywhere"; write Local or Global`},
		{"  limits: {a: {rates: [{limit: 1, window: 1s}], cost: {tokens: usage..total}}}", -1, `spec.limits[a].cost.tokens is "usage..total"`},
		{"  limits: {a: {rates: [{limit: 1, window: 1s}], cost: {tokens: a}, counters: [\"request.headers['x-tenant']\"]}}", -1, "spec.limits[a].counters has request.headers or request.path"},
		{"  limits: {a: {rates: [{limit: 1, window: 1s}], cost: {tokens: a}, counters: [request.path]}}", -1, "spec.limits[a].counters has request.headers or request.path"},
	} {
		p := limitWorld(t, c.text)
		got, problem := len(p.Asks), ""
		if p.Asks == nil {
			got = -1
		}
		if p.Refused != nil {
			problem = p.Refused.Message
		}
		if got != c.limits || !strings.Contains(problem, c.problem) || c.problem == "" && problem != "" {
			t.Errorf("%s: %d limits, want %d; %s", c.text, got, c.limits, problem)
		}
		if got == 1 && len(p.Asks[0].Value.Counters) > 1 {
			t.Errorf("%s: it counts by %v", c.text, p.Asks[0].Value.Counters)
		}
	}
}

// TestLimitsOfANamespace protects proxies from a namespace with limits without number: those of its
// younger policies that are too many are left out, and say so. Limits without counters, and those
// of other namespaces, are not among them.
func TestLimitsOfANamespace(t *testing.T) {
	const says = "limits: {free: {rates: [{limit: 1, window: 1s}]}, each: {rates: [{limit: 1, window: 1s}, {limit: 9, window: 1m}], counters: [client.address]}}"
	var texts []string
	policy := func(namespace, name string, year int) {
		texts = append(texts, fmt.Sprintf(`kind: RateLimitPolicy
metadata: {name: %s, namespace: %s, creationTimestamp: "%d-01-01T00:00:00Z"}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}, {group: gateway.networking.k8s.io, kind: Gateway, name: other}]
  %s
`, name, namespace, year, says))
	}
	const fit = limits.MaxCounted / 2 // two rates, whatever the targets are
	for i := range fit + 1 {
		policy("many", fmt.Sprintf("p-%02d", i), 2040-i) // the last is the oldest
	}
	policy("few", "p", 2050)
	w := newWorld(settings{}.options())
	w.set(t, decode(t, strings.Join(texts, "---\n"))...)
	w.engine.View(func(c *flow.Ctx) {
		for name, p := range flow.All(c, w.graph.RateLimitPolicies) {
			over := name == (object.Name{Namespace: "many", Name: "p-00"})
			if want := 2; over {
				want = 1
				if len(p.Asks) != want || p.Refused == nil || !strings.Contains(p.Refused.Message, "spec.limits[each] is more than the 64 rates with counters") {
					t.Errorf("%s: %d limits are in force; %v", name, len(p.Asks), p.Refused)
				}
			} else if len(p.Asks) != want || p.Refused != nil {
				t.Errorf("%s: %d limits are in force; %v", name, len(p.Asks), p.Refused)
			}
		}
	})
}

// TestLimitOfManyRoutes protects that one limit with a counter may be for as many routes as its
// policy selects, beside an older policy that has a good part of what a namespace may have.
func TestLimitOfManyRoutes(t *testing.T) {
	w := newWorld(settings{}.options())
	objects := decode(t, `kind: RateLimitPolicy
metadata: {name: old, namespace: many, creationTimestamp: "2019-01-01T00:00:00Z"}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
  limits: {each: {rates: [{limit: 1, window: 1s}, {limit: 9, window: 1m}], counters: [client.address]}}
---
kind: RateLimitPolicy
metadata: {name: p, namespace: many, creationTimestamp: "2020-01-01T00:00:00Z"}
spec:
  targetSelectors: [{group: gateway.networking.k8s.io, kind: HTTPRoute, matchLabels: {app: shop}}]
  limits: {each: {rates: [{limit: 1, window: 1s}, {limit: 9, window: 1m}], counters: [client.address]}}
`)
	for i := range 2 * limits.MaxCounted {
		objects = append(objects, decode(t, fmt.Sprintf(`kind: HTTPRoute
metadata: {name: r-%03d, namespace: many, labels: {app: shop}}
spec: {}
`, i))...)
	}
	w.set(t, objects...)
	w.engine.View(func(c *flow.Ctx) {
		for name, p := range flow.All(c, w.graph.RateLimitPolicies) {
			if len(p.Asks) != 1 || p.Refused != nil {
				t.Errorf("%s: %d limits are in force; %v", name, len(p.Asks), p.Refused)
			}
		}
		p, _ := flow.Get(c, w.graph.RateLimitPolicies, object.Name{Namespace: "many", Name: "p"})
		if len(p.Targets) != 2*limits.MaxCounted {
			t.Errorf("it is for %d routes", len(p.Targets))
		}
	})
}

// TestSharedLimitsOfANamespace protects all from a namespace with more limits than a request may
// be described by: the service could judge none of them. Each rate is one, whatever it is for.
func TestSharedLimitsOfANamespace(t *testing.T) {
	var texts []string
	const fit = limits.MaxCounted / 4
	for i := range fit + 1 {
		texts = append(texts, fmt.Sprintf(`kind: RateLimitPolicy
metadata: {name: p-%02d, namespace: many, creationTimestamp: "%d-01-01T00:00:00Z"}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}, {group: gateway.networking.k8s.io, kind: Gateway, name: other}]
  limits: {all: {scope: Global, rates: [{limit: 1, window: 1s}, {limit: 2, window: 2s}, {limit: 3, window: 3s}, {limit: 4, window: 4s}]}}
`, i, 2040-i)) // the last is the oldest
	}
	w := newWorld(settings{}.options())
	w.set(t, decode(t, strings.Join(texts, "---\n"))...)
	w.engine.View(func(c *flow.Ctx) {
		for name, p := range flow.All(c, w.graph.RateLimitPolicies) {
			if over := name.Name == "p-00"; over == p.Shared() || over != (p.Refused != nil) {
				t.Errorf("%s: %d limits are in force; %v", name, len(p.Asks), p.Refused)
			}
		}
	})
}
