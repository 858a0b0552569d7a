//go:build linux

package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// dividedRoutes are how many routes a site has beside others whose table is divided above half of them.
const dividedRoutes = 40

// inShards are a site's manifests with a table that is divided.
func inShards(t *testing.T, more map[string]string) map[string]string {
	t.Helper()
	var b strings.Builder
	for i := range dividedRoutes {
		b.WriteString(siteRoute(fmt.Sprintf("many-%d", i), fmt.Sprintf("h%d.example", i), "v1"))
	}
	all := map[string]string{
		"gateway.yaml": withShards(siteGateway("{name: http, port: 80, protocol: HTTP}")),
		"shards.yaml":  shardAbove(dividedRoutes / 2),
		"many.yaml":    b.String(),
	}
	maps.Copy(all, more)
	return all
}

// startDivided starts a site whose table is divided.
func startDivided(t *testing.T, more map[string]string) *site {
	t.Helper()
	s := startSite(t, inShards(t, more))
	eventually(t, siteTimeout, func() error {
		if n := s.shards(t); n == 0 {
			return fmt.Errorf("the table is in no shards")
		}
		return nil
	})
	return s
}

// answersNow checks what a URL is answered, without waiting for it.
func (s *site) answersNow(t *testing.T, target string, status int) {
	t.Helper()
	if o, err := s.call(target); err != nil || o.status != status {
		t.Errorf("%s is answered %+v, %v, want %d", target, o, err, status)
	}
}

// TestAuthPolicyOfADividedTable protects who may pass by a table in shards, in front of which it
// stands: a policy is made, edited, broken and taken away under a steady crowd, of which each
// request that a policy stops before and after is stopped in between.
func TestAuthPolicyOfADividedTable(t *testing.T) {
	t.Parallel()
	s := startDivided(t, map[string]string{"keys.yaml": keysSecret("keys", "alice", "k0")})
	listeners := s.envoyStats(t, "listener_manager")
	all := startLoad(t, s.listener(), 1, func() string { return "h1.example" })
	all.more(t, 20)
	s.write(t, "policy.yaml", authPolicy("robots", onGateway, needsKeys))
	s.answers(t, "http://h1.example/", http.StatusUnauthorized)
	s.answers(t, "http://h1.example/?key=k0", http.StatusOK)
	s.says(t, "AuthPolicy robots", "All rules of the policy are in force")
	for i := range dividedRoutes { // all shards have it when the policy says so
		s.answersNow(t, fmt.Sprintf("http://h%d.example/", i), http.StatusUnauthorized)
	}
	if _, wrong := all.passed(); wrong["status 500"]+wrong["status 503"] > 0 || len(wrong) == 0 {
		t.Errorf("when a policy is made, not 200: %v", wrong)
	}

	var host atomic.Int64
	crowd := startLoad(t, s.listener(), loadClients, func() string { return fmt.Sprintf("h%d.example", host.Add(1)%dividedRoutes) })
	for i := range 8 {
		key := fmt.Sprintf("k%d", i+1)
		s.write(t, "keys.yaml", keysSecret("keys", "alice", key))
		s.answers(t, "http://h2.example/?key="+key, http.StatusOK)
		s.answersNow(t, fmt.Sprintf("http://h2.example/?key=k%d", i), http.StatusUnauthorized)
		crowd.more(t, 50)
	}
	s.write(t, "policy.yaml", authPolicy("robots", onGateway, needsOffice))
	s.answers(t, "http://h2.example/?key=k8", http.StatusForbidden)
	crowd.more(t, 50)
	text := authPolicy("robots", onGateway, needsKeys)
	s.write(t, "policy.yaml", text[:len(text)-8])
	crowd.more(t, 100)
	s.write(t, "policy.yaml", authPolicy("robots", onGateway, "authentication: {none: {apiKey: {secretRef: {name: nonesuch}}}}"))
	s.says(t, "AuthPolicy robots", "nonesuch, which does not exist")
	crowd.more(t, 50)
	s.write(t, "policy.yaml", text)
	s.answers(t, "http://h2.example/?key=k8", http.StatusOK)
	if now := s.envoyStats(t, "listener_manager"); !maps.Equal(now, listeners) {
		t.Errorf("listeners have changed: %v, then %v", listeners, now)
	}
	s.kill()
	s.again(t)
	crowd.more(t, 50)
	s.answers(t, "http://h2.example/?key=k8", http.StatusOK)

	// Routes that say something else, and nothing of it depends on what stands in front of the table.
	s.write(t, "many2.yaml", authPolicy("own", "kind: HTTPRoute, name: home", needsOffice))
	s.answers(t, "http://home.example/?key=k8", http.StatusForbidden)
	s.write(t, "many2.yaml", authPolicy("own", "kind: HTTPRoute, name: home", "authentication: {anyone: {anonymous: {}}}"))
	s.answers(t, "http://home.example/", http.StatusOK)
	s.write(t, "keys.yaml", keysSecret("keys", "alice", "last"))
	s.answers(t, "http://h3.example/?key=last", http.StatusOK)
	s.answersNow(t, "http://home.example/", http.StatusOK)
	if passed, wrong := crowd.passed(); passed > 0 {
		t.Errorf("%d of %d requests have passed: %v", passed, crowd.sent.Load(), wrong)
	} else {
		t.Logf("%d requests: %v", crowd.sent.Load(), wrong)
	}

	s.remove(t, "policy.yaml")
	for i := range dividedRoutes {
		s.answers(t, fmt.Sprintf("http://h%d.example/", i), http.StatusOK)
	}
}

// TestPolicyTakesOverInADividedTable protects that no request passes that is stopped before and after, when in one
// edit the Gateway's policy becomes another and a route gets one of its own.
func TestPolicyTakesOverInADividedTable(t *testing.T) {
	t.Parallel()
	keyed := func(secret string) string {
		return fmt.Sprintf("authentication: {robots: {apiKey: {secretRef: {name: %s}, from: [{query: key}]}}}", secret)
	}
	wide := func(service string) string { // in all shards
		return siteRules("wide", "'*.wide.example'", "- backendRefs: [{name: "+service+", port: 8080}]")
	}
	before := authPolicy("robots", onGateway, keyed("first")) + wide("v1")
	after := authPolicy("robots", onGateway, keyed("second")) + authPolicy("own", onHome, keyed("own")) + wide("v2")
	s := startDivided(t, map[string]string{
		"keys.yaml": keysSecret("first", "alice", "k1") + keysSecret("second", "alice", "k2") + keysSecret("own", "alice", "k3"),
	})
	s.write(t, "policy.yaml", before)
	s.answers(t, "http://home.example/?key=k2", http.StatusUnauthorized)
	s.answers(t, "http://home.example/?key=k1", http.StatusOK)
	l := startLoad(t, s.listener(), loadClients, func() string { return "home.example/?key=k2&rest=" })
	for range 20 {
		s.write(t, "policy.yaml", after)
		s.answers(t, "http://home.example/?key=k3", http.StatusOK)
		s.answers(t, "http://h1.example/?key=k2", http.StatusOK)
		l.more(t, 20)
		s.write(t, "policy.yaml", before)
		s.answers(t, "http://home.example/?key=k1", http.StatusOK)
		l.more(t, 20)
	}
	if passed, wrong := l.passed(); passed > 0 {
		t.Errorf("%d of %d requests have passed: %v", passed, l.sent.Load(), wrong)
	}
}

// TestKeySetOfADividedTable protects that keys of an issuer that change cost none of a table's shards, and
// no listener.
func TestKeySetOfADividedTable(t *testing.T) {
	t.Parallel()
	p := startFrugalProvider(t, "alice")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	next := &frugalProvider{Server: p.Server, key: key}
	set := func(p *frugalProvider) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: Secret\nmetadata: {name: jwks, namespace: %s}\nstringData:\n  jwks.json: '%s'\n", siteNamespace, p.keySet())
	}
	s := startDivided(t, nil)
	s.write(t, "jwks.yaml", set(p))
	s.write(t, "policy.yaml", authPolicy("staff", onGateway,
		fmt.Sprintf("authentication: {staff: {jwt: {issuer: '%s', jwks: {secretRef: {name: jwks}}, from: [{query: token}]}}}", p.URL)))
	old, young := p.idToken(t, "alice"), next.idToken(t, "alice")
	page := func(token string) string { return "http://h1.example/?token=" + token }
	s.answers(t, page(old), http.StatusOK)
	s.answers(t, page(young), http.StatusUnauthorized)
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	tables, listeners := s.reloads(t), s.envoyStats(t, "listener_manager")
	s.write(t, "jwks.yaml", set(next))
	s.answers(t, page(young), http.StatusOK)
	s.answersNow(t, page(old), http.StatusUnauthorized)
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	if now := s.reloads(t); !maps.Equal(now, tables) {
		t.Errorf("route configurations have been loaded anew: %v, then %v", tables, now)
	}
	if now := s.envoyStats(t, "listener_manager"); !maps.Equal(now, listeners) {
		t.Errorf("listeners have changed: %v, then %v", listeners, now)
	}
}

// reloads is how often Envoy has taken each route configuration.
func (s *site) reloads(t *testing.T) map[string]int64 {
	t.Helper()
	out := s.envoyStats(t, "config_reload")
	maps.DeleteFunc(out, func(name string, _ int64) bool {
		return !strings.Contains(name, ".rds.") || !strings.HasSuffix(name, ".config_reload")
	})
	if len(out) == 0 {
		t.Error("Envoy has taken no route configuration")
	}
	return out
}

// TestLogInInFrontOfADividedTable has people log in where a Gateway says so.
func TestLogInInFrontOfADividedTable(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	issuer := startProvider(t, 5*time.Minute, "http://home.example/oauth2/callback", "http://home.example/back")
	s := startSite(t, inShards(t, map[string]string{"keys.yaml": loginSecretOf(loginSecret)}))
	const page = "http://home.example/page?of=mine"
	s.write(t, "policy.yaml", authPolicy("staff", onGateway, loginPolicy(issuer, "      logoutPath: /leave\n")))
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	s.answers(t, page, http.StatusFound)
	person := newBrowser(t, s.listener())
	if res, body := person.opens(page); res.StatusCode != http.StatusOK || res.Request.URL.String() != page {
		t.Fatalf("whoever logs in is answered %d %q at %s; %q", res.StatusCode, body, res.Request.URL, person.trace)
	}
	refusesOthers(t, s, person, page)
	// The session is of all hosts' policy, and lives through an edit of it.
	s.write(t, "policy.yaml", authPolicy("staff", onGateway, loginPolicy(issuer, "      logoutPath: /oauth2/logout\n")))
	s.answers(t, "http://home.example/oauth2/logout", http.StatusFound)
	if res, body := person.send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusOK {
		t.Errorf("after an edit the session is answered %d %q", res.StatusCode, body)
	}
	eventually(t, siteTimeout, func() error { // until then the path is a page
		if res, _ := person.send(http.MethodGet, "http://home.example/oauth2/logout", nil, nil); res.StatusCode != http.StatusFound {
			return fmt.Errorf("logging out is answered %d", res.StatusCode)
		}
		return nil
	})
	if res, _ := person.send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusFound {
		t.Errorf("after logging out the answer is %d", res.StatusCode)
	}
}
