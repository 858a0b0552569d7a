package standalone

import (
	"slices"
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

// TestMisspeltPolicy: a policy with a mistake lets nobody pass where it is for, from the beginning
// and after it was valid, through restarts too.
func TestMisspeltPolicy(t *testing.T) {
	for _, c := range [][2]string{
		{"kind: AuthPolicy", "kind: AuthPolcy"},
		{"gatehouse.dev/v1alpha1", "gatehouse.dv/v1alpha1"},
		{"gatehouse.dev/v1alpha1", "gatehouse.dev/v1"},
		{"defaults:", "default:"},
		{"strategy: merge", "strategy: merged"},
		{"authentication:", "authentification:"},
		{"apiKey:", "apikey:"},
		{"secretRef:", "secret:"},
		{"            name: keys\n", ""},
		{"          secretRef:\n            name: keys\n", ""},
		{"  defaults:\n", ""},
		{"    name: web\n", "    name: web\n    sectoinName: nonesuch\n"},
	} {
		t.Run(c[0]+" → "+c[1], func(t *testing.T) {
			newGuarded(t).stayClosed(guardPolicy, c)
		})
	}
}

// TestUnreadablePolicy: one of which no target can be read has no effect, unless it was valid.
func TestUnreadablePolicy(t *testing.T) {
	for _, c := range [][2]string{
		{"spec:", "spce:"},
		{"targetRefs:", "targetRef:"},
		{"    name: web\n", "    nme: web\n"},
		{"    authentication:", "\tauthentication:"},
	} {
		t.Run(c[0]+" → "+c[1], func(t *testing.T) {
			g := newGuarded(t)
			text := strings.Replace(guardPolicy, c[0], c[1], 1)
			g.put("guard.yaml", text)
			g.start()
			if g.isClosed() || g.problems() == "" {
				t.Errorf("it has an effect; problems: %s", g.problems())
			}
			g.edit("guard.yaml", guardPolicy)
			g.closed()
			g.edit("guard.yaml", text)
			g.closed()
			g.start()
			g.closed()
		})
	}
}

// TestMistakeBesidePolicy: a policy that never was valid closes its target beside a valid one that
// is older and opens it.
func TestMistakeBesidePolicy(t *testing.T) {
	g := newGuarded(t)
	opens := strings.NewReplacer("name: guard", "name: older\n  creationTimestamp: \"2026-01-01T00:00:00Z\"", "defaults", "overrides", "robots:\n        apiKey:\n          secretRef:\n            name: keys", "all: {anonymous: {}}").Replace(guardPolicy)
	g.put("guard.yaml", strings.NewReplacer("apiKey", "apiKeyy", "name: guard", "name: guard\n  creationTimestamp: \"2026-01-02T00:00:00Z\"").Replace(guardPolicy)+"---\n"+opens)
	g.start()
	web := object.Key{Kind: kind.Gateway, Name: object.Name{Namespace: "infra", Name: "web"}}
	paths, _ := view.EffectivePolicies(g.p, web, "")
	if len(paths) == 0 || len(paths[0].Rules) != 1 || paths[0].Rules[0].Policy != "infra/guard" {
		t.Errorf("%+v; problems: %s", paths, g.problems())
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
}

// closed checks that nobody passes to any listener without credentials.
func (g *guarded) closed() {
	g.Helper()
	if !g.isClosed() {
		g.Errorf("everybody passes to a listener; problems: %v", g.told)
	}
}

func (g *guarded) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	web := object.Key{Kind: kind.Gateway, Name: object.Name{Namespace: "infra", Name: "web"}}
	paths, _ := view.EffectivePolicies(g.p, web, "")
	return slices.ContainsFunc(paths, func(p view.Effective) bool { return p.Kind == kind.AuthPolicy.Name() && len(p.Rules) > 0 })
}
