package standalone

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

const guardPolicy = `apiVersion: gatehouse.dev/v1alpha1
kind: AuthPolicy
metadata:
  name: guard
  namespace: infra
spec:
  targetRefs:
  - group: gateway.networking.k8s.io
    kind: Gateway
    name: web
  defaults:
    strategy: merge
    authentication:
      robots:
        apiKey:
          secretRef:
            name: keys
`

// TestMisspeltPolicy: a policy with a mistake lets nobody pass, from the beginning and after it
// was valid, through restarts too.
func TestMisspeltPolicy(t *testing.T) {
	for _, c := range [][2]string{
		{"kind: AuthPolicy", "kind: AuthPolcy"},
		{"kind: AuthPolicy", "kind: authpolicy"},
		{"kind: AuthPolicy", "knd: AuthPolicy"},
		{"gatehouse.dev/v1alpha1", "gatehouse.dv/v1alpha1"},
		{"gatehouse.dev/v1alpha1", "gatehouse.dev/v1"},
		{"metadata:", "metdata:"},
		{"  name: guard", "  nme: guard"},
		{"spec:", "spce:"},
		{"targetRefs:", "targetRef:"},
		{"kind: Gateway\n", "kind: Gatway\n"},
		{"gateway.networking.k8s.io", "gateway.networking.k8s.oi"},
		{"defaults:", "default:"},
		{"strategy: merge", "strategy: merged"},
		{"authentication:", "authentification:"},
		{"apiKey:", "apikey:"},
		{"secretRef:", "secret:"},
		{"            name: keys\n", ""},
		{"          secretRef:\n            name: keys\n", ""},
		{"    authentication:", "\tauthentication:"},
		{"    strategy: merge", "   strategy: merge"},
		{"  defaults:\n", ""},
	} {
		t.Run(c[0]+" → "+c[1], func(t *testing.T) {
			newGuarded(t).stayClosed(guardPolicy, c)
		})
	}
}

// selectingPolicy is guardPolicy by labels of the Gateway.
const selectingPolicy = `apiVersion: gatehouse.dev/v1alpha1
kind: AuthPolicy
metadata:
  name: guard
  namespace: infra
spec:
  targetSelectors:
  - kind: Gateway
    matchLabels:
      guarded: "yes"
      example.com/team: shop
  defaults:
    strategy: merge
    authentication:
      robots:
        apiKey:
          secretRef:
            name: keys
`

// TestMisspeltSelector: nor does one with a mistake that names by labels what it guards.
func TestMisspeltSelector(t *testing.T) {
	for _, c := range [][2]string{
		{"targetSelectors:", "targetSelector:"},
		{"targetSelectors:", "targetselectors:"},
		{"kind: Gateway\n", "kind: Gatway\n"},
		{"matchLabels:", "matchLabel:"},
		{"matchLabels:", "labels:"},
		{"guarded: \"yes\"", "guarded: \"yes"},
		{"guarded: \"yes\"", "guarded: [\"yes\"]"},
		{"example.com/team: shop", "example.com/team shop"},
		{"      guarded", "\tguarded"},
		{"  - kind", "    kind"},
		{"  - kind: Gateway\n    matchLabels:\n      guarded: \"yes\"\n      example.com/team: shop\n", "  - {kind: Gateway, matchLabels: {guarded: 'yes', example.com/team: shop}\n"},
		{"    matchLabels:", "    matchExpressions: []\n    matchLabels:"},
		{"defaults:", "default:"},
		{"  defaults:\n", ""},
	} {
		t.Run(c[0]+" → "+c[1], func(t *testing.T) {
			g := newGuarded(t)
			g.put("site.yaml", strings.Replace(site, "  name: web\n", "  name: web\n  labels: {guarded: \"yes\", example.com/team: shop}\n", 1))
			g.stayClosed(selectingPolicy, c)
		})
	}
}

// stayClosed checks that nobody passes by a policy with a mistake, whenever it is made: one text
// in place of another.
func (g *guarded) stayClosed(policy string, mistake [2]string) {
	g.Helper()
	text := strings.Replace(policy, mistake[0], mistake[1], 1)
	if text == policy {
		g.Fatal("there is no mistake")
	}
	g.put("guard.yaml", text)
	for range 2 {
		g.start()
		g.closed()
	}
	for _, next := range []string{policy, text} {
		g.edit("guard.yaml", next)
		g.closed()
	}
	g.start()
	g.closed()
	g.edit("guard.yaml", text[:len(text)*3/4]) // half of it is written
	g.closed()
}

// closed checks that nobody passes to any listener without credentials.
func (g *guarded) closed() {
	g.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	web := object.Key{Kind: kind.Gateway, Name: object.Name{Namespace: "infra", Name: "web"}}
	paths, ok := view.EffectivePolicies(g.p, web, "")
	if !ok {
		g.Error("there is no listener")
	}
	for _, p := range paths {
		if p.Kind == kind.AuthPolicy.Name() && len(p.Rules) == 0 {
			g.Errorf("everybody passes to listener %s; problems: %v", p.Listener, g.told)
		}
	}
}
