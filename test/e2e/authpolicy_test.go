//go:build linux

package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

var (
	authEdits = flag.Int("auth-edits", 30, "how many edits TestAuthPolicyThroughEdits makes")
	authSeed  = flag.Uint64("auth-seed", 1, "which edits these are")
)

// authPolicy is an AuthPolicy for a target in flow notation, with a spec behind its targets.
func authPolicy(name, target, spec string) string {
	return fmt.Sprintf(`---
apiVersion: gatehouse.dev/v1alpha1
kind: AuthPolicy
metadata: {name: %s, namespace: %s}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, %s}]
%s
`, name, siteNamespace, target, indent(spec))
}

// keysSecret is a Secret with the key of one client.
func keysSecret(name, client, key string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\nstringData: {%s: %s}\n", name, siteNamespace, client, key)
}

const (
	onGateway   = "kind: Gateway, name: gw"
	onHome      = "kind: HTTPRoute, name: home"
	needsKeys   = "authentication: {robots: {apiKey: {secretRef: {name: keys}, from: [{query: key}], identityHeader: X-Client}}}"
	needsOffice = "authorization: {office: {addresses: {allow: [192.0.2.0/24]}}}"
)

// TestAuthPolicy protects who may pass: by files, with keys that are rotated, and with no
// listener changed for it.
func TestAuthPolicy(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	s.answers(t, "http://home.example/", http.StatusOK)
	listeners := s.envoyStats(t, "listener_manager")
	s.write(t, "keys.yaml", keysSecret("keys", "alice", "first"))
	s.write(t, "policy.yaml", authPolicy("robots", onGateway, needsKeys))
	s.answers(t, "http://home.example/", http.StatusUnauthorized)
	s.answers(t, "http://home.example/?key=first", http.StatusOK)
	s.says(t, "AuthPolicy robots", "All rules of the policy are in force") // since Envoy has acknowledged it

	s.write(t, "keys.yaml", keysSecret("keys", "alice", "second"))
	s.answers(t, "http://home.example/?key=first", http.StatusUnauthorized)
	s.answers(t, "http://home.example/?key=second", http.StatusOK)

	// A rule of a route with a policy of its own, and the others.
	s.write(t, "home.yaml", siteRules("home", "home.example", `- backendRefs: [{name: v1, port: 8080}]
- {name: health, matches: [{path: {value: /healthz}}], backendRefs: [{name: v1, port: 8080}]}`))
	s.write(t, "health.yaml", authPolicy("health", "kind: HTTPRoute, name: home, sectionName: health", "authentication: {anyone: {anonymous: {}}}"))
	s.answers(t, "http://home.example/healthz", http.StatusOK)
	s.answers(t, "http://home.example/", http.StatusUnauthorized)
	s.says(t, "AuthPolicy robots", "in force, except where others take its place: AuthPolicy "+siteNamespace+"/health on rule health")

	// Without its Secret nobody passes, and it says so.
	s.remove(t, "keys.yaml")
	s.answers(t, "http://home.example/?key=second", http.StatusUnauthorized)
	s.says(t, "AuthPolicy robots", "names Secret "+siteNamespace+"/keys, which does not exist")
	s.write(t, "keys.yaml", keysSecret("keys", "alice", "third"))
	s.answers(t, "http://home.example/?key=third", http.StatusOK)

	// What an override closes nobody opens, under whatever name.
	s.write(t, "policy.yaml", authPolicy("robots", onGateway, "overrides: {strategy: merge, "+needsKeys+"}"))
	s.answers(t, "http://home.example/healthz", http.StatusUnauthorized)
	s.says(t, "AuthPolicy health", "Overridden by AuthPolicy "+siteNamespace+"/robots")

	s.remove(t, "health.yaml")
	s.remove(t, "policy.yaml")
	s.answers(t, "http://home.example/", http.StatusOK)
	if err := sameStats(listeners, s.envoyStats(t, "listener_manager"), "listener_manager.listener_added", "listener_manager.listener_modified",
		"listener_manager.listener_removed", "listener_manager.listener_in_place_updated"); err != nil {
		t.Error(err)
	}
}

// manyAddresses are so many that Envoy has them as a tree.
func manyAddresses() string {
	var all []string
	for i := range 40 {
		all = append(all, fmt.Sprintf("192.0.2.%d", i))
	}
	return "authorization: {many: {addresses: {allow: [" + strings.Join(all, ", ") + "]}}}"
}

// TestAuthPolicyThroughEdits makes edits of policies, of what they refer to, of routes and of
// Gateways, and restarts in between. Before and after each of them a request without
// credentials is to be stopped, so not one may pass on the way.
func TestAuthPolicyThroughEdits(t *testing.T) {
	t.Parallel()
	t.Run("whole table", func(t *testing.T) {
		t.Parallel()
		throughEdits(t, nil)
	})
	t.Run("table that is divided and made whole", func(t *testing.T) {
		t.Parallel()
		throughEdits(t, map[string][]string{
			"many.yaml":   {inShards(t, nil)["many.yaml"]},
			"shards.yaml": {shardAbove(dividedRoutes / 2), shardAbove(dividedRoutes / 4), shardAbove(1024)},
		})
	})
}

// throughEdits makes the edits on a site with more files, each of which has some versions.
func throughEdits(t *testing.T, more map[string][]string) {
	t.Helper()
	valid := map[string][]string{
		"policy.yaml": {
			authPolicy("robots", onGateway, needsKeys),
			authPolicy("robots", onGateway, needsOffice),
			authPolicy("robots", onGateway+", sectionName: http", needsKeys),
			authPolicy("robots", onGateway, "overrides: {strategy: merge, "+needsKeys+"}"),
			authPolicy("robots", onGateway, "defaults: {strategy: merge, "+needsKeys+", "+needsOffice+"}"),
			authPolicy("robots", onHome, needsKeys),
			authPolicy("robots", onGateway, "authorization: {home: {when: request.path.startsWith('/'), methods: [POST]}}"),
			authPolicy("robots", onGateway, "defaults: {strategy: merge, authorization: {home: {when: request.path.startsWith('/'), clients: [alice]}, more: {when: request.headers.nonesuch == 'x', headers: {x-y: [z]}}}}"),
			authPolicy("robots", onGateway, "authentication: {machines: {clientCertificate: {}}}\nresponses: {unauthenticated: {status: 404}}"),
			authPolicy("robots", onGateway, "defaults: {strategy: merge, "+needsOffice+", responses: {forbidden: {redirect: /x}}}"),
			authPolicy("robots", onGateway, manyAddresses()) + authPolicy("more", onHome, "authorization: {home: {when: request.path.startsWith('/'), methods: [POST]}}"),
			authPolicy("robots", onGateway, "authentication: {none: {apiKey: {secretRef: {name: nonesuch}}}}"),
			authPolicy("robots", onGateway, needsOffice) + authPolicy("more", onHome, needsKeys),
			authPolicy("robots", onGateway, needsKeys) + authPolicy("more", onHome, needsOffice),
			authPolicy("robots", onGateway, "authorization: {asked: {external: {protocol: HTTP, backendRef: {name: nonesuch, port: 8080}}}}"),
			authPolicy("robots", onGateway, "defaults: {strategy: merge, authorization: {asked: {when: request.path.startsWith('/'), external: {protocol: GRPC, backendRef: {name: v1, port: 8080}}}}}"),
			authPolicy("robots", onGateway, "overrides: {strategy: merge, "+needsOffice+"}") +
				authPolicy("more", onHome, "authorization: {asked: {external: {protocol: HTTP, failureMode: Open, backendRef: {name: nonesuch, port: 8080}}}}"),
		},
		"keys.yaml": {
			keysSecret("keys", "alice", "one"), keysSecret("keys", "bob", "two"), keysSecret("keys", "alice", "''"), keysSecret("other", "alice", "one"),
		},
		"home.yaml": {
			siteRoute("home", "home.example", "v1"), siteRoute("home", "home.example", "v2"), siteRoute("home", "home.example", "nonesuch"),
			siteRules("home", "home.example", "- {name: r, matches: [{path: {value: /}}, {path: {value: /b}}], backendRefs: [{name: v1, port: 8080}]}"),
		},
		"gateway.yaml": {
			siteGateway("{name: http, port: 80, protocol: HTTP}"),
			siteGateway("{name: http, port: 80, protocol: HTTP}", "{name: more, port: 80, protocol: HTTP, hostname: more.example}"),
			siteGateway("{name: http, port: 80, protocol: HTTP}", "{name: other, port: 81, protocol: HTTP}"),
		},
		"limits.yaml": { // which never let anybody through
			limitPolicy("limits", onGateway, "limits: {each: {rates: [{limit: 1000, window: 1s}], counters: [client.address]}}"),
			limitPolicy("limits", onGateway, "limits: {each: {scope: Global, rates: [{limit: 1000, window: 1s}], counters: [auth.client]}}"),
			limitPolicy("limits", onHome, "limits: {tokens: {scope: Global, onFailure: Deny, rates: [{limit: 10, window: 24h}], cost: {tokens: usage.total_tokens}}}"),
			limitPolicy("limits", onHome, "limits: {each: {scope: Global, shadow: true, rates: [{limit: 1, window: 24h}]}}"), "",
		},
		"aside.yaml": {siteRoute("aside", "aside.example", "v1"), authPolicy("aside", "kind: HTTPRoute, name: nonesuch", needsKeys), ""},
	}
	maps.Copy(valid, more)
	if more != nil {
		for i, text := range valid["gateway.yaml"] {
			valid["gateway.yaml"][i] = withShards(text)
		}
	}
	files := slices.Sorted(maps.Keys(valid))
	first := map[string]string{"policy.yaml": valid["policy.yaml"][0], "keys.yaml": valid["keys.yaml"][0], "gateway.yaml": valid["gateway.yaml"][0]}
	for file, versions := range more {
		first[file] = versions[0]
	}
	s := newSite(t, first)
	s.answers(t, "http://home.example/", http.StatusUnauthorized)
	l := startLoad(t, s.listener(), 2, func() string { return "home.example" })
	r := rand.New(rand.NewPCG(*authSeed, 0)) //nolint:gosec // no secret
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	for range *authEdits {
		file := pick(files)
		if r.IntN(2) == 0 {
			file = "policy.yaml"
		}
		text := pick(valid[file])
		switch r.IntN(8) {
		case 0: // a letter that is missing somewhere in what is said
			if file == "policy.yaml" { // behind what it is for, which nobody can guess
				from := strings.LastIndex(text, "}]\n") + 3
				i := from + r.IntN(len(text)-from)
				s.write(t, file, text[:i]+text[i+1:])
				l.more(t, 30)
			}
		case 1: // half of it
			if file == "policy.yaml" {
				s.write(t, file, text[:len(text)/2+r.IntN(len(text)/2)])
				l.more(t, 30)
			}
		case 2:
			if _, err := s.terminate(); err != nil {
				t.Fatal(err)
			}
			s.again(t)
		case 3:
			s.kill()
			s.again(t)
		}
		s.write(t, file, text)
		l.more(t, 40)
	}
	passed, wrong := l.passed()
	if passed != 0 {
		t.Errorf("%d of %d requests passed in %d edits: %v", passed, l.sent.Load(), *authEdits, wrong)
	}
	t.Logf("%d requests in %d edits: %v", l.sent.Load(), *authEdits, wrong)
}
