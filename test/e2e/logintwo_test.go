//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// TestLogInByAnotherNamespace protects that proxies get tokens from a Service of another namespace as long
// as that one lets them, and that nobody passes when it doesn't.
func TestLogInByAnotherNamespace(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	issuer := startProvider(t, 5*time.Minute, "http://home.example/oauth2/callback")
	at, err := url.Parse(issuer)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64 // beside the issuer, which the controller and people reach by its URL
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(service.Close)
	grant := func(from string) string {
		return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: logins, namespace: far}
spec:
  from: [{%s}]
  to: [{group: "", kind: Service, name: provider}]
`, from)
	}
	const granted = "group: gatehouse.dev, kind: AuthPolicy, namespace: " + siteNamespace
	const page = "http://home.example/page"
	s := newSite(t, map[string]string{
		"keys.yaml":     loginSecretOf(loginSecret),
		"provider.yaml": httpBackend.leading("far", "provider", service.Listener.Addr().(*net.TCPAddr).Port),
		"policy.yaml":   authPolicy("staff", onHome, loginPolicy(issuer, "      backendRef: {name: provider, namespace: far, port: 8080}\n")),
	})
	closed := func(when string) {
		t.Helper()
		s.says(t, "AuthPolicy staff", "staff].oidc.backendRef")
		s.says(t, "AuthPolicy staff", "ReferenceGrant")
		s.answers(t, page, http.StatusUnauthorized)
		if asked.Load() != 0 {
			t.Errorf("%s the Service is asked", when)
		}
	}
	closed("without a grant")
	for what, from := range map[string]string{
		"routes":            "group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: " + siteNamespace,
		"another namespace": "group: gatehouse.dev, kind: AuthPolicy, namespace: other",
	} {
		s.write(t, "grant.yaml", grant(from))
		s.write(t, "aside.yaml", siteRoute("aside", "aside.example", "v1")) // until what was written before is read
		s.serves(t, "aside.example", "v1")
		closed("with a grant for " + what)
		s.remove(t, "aside.yaml")
		s.answers(t, "http://aside.example/", http.StatusNotFound)
	}

	s.write(t, "grant.yaml", grant(granted))
	s.answers(t, page, http.StatusFound)
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	person := newBrowser(t, s.listener())
	if res, body := person.opens(page); res.StatusCode != http.StatusOK || !strings.Contains(body, `"id1"`) {
		t.Fatalf("whoever logs in is answered %d %q; %q", res.StatusCode, body, person.trace)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the Service has been asked %d times for the token of one login", n)
	}

	// Without the grant a session is worth nothing any more.
	s.remove(t, "grant.yaml")
	s.answers(t, page, http.StatusUnauthorized)
	s.says(t, "AuthPolicy staff", "ReferenceGrant")
	if res, body := person.send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the grant a session is answered %d %q", res.StatusCode, body)
	}
}

// TestLogInAtOnePath protects that of two policies that have people of a host come back at one path the
// younger one lets nobody in and says why, and that nobody who logs in by one passes by the other, unless
// both are for the same client.
func TestLogInAtOnePath(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	issuer := startProvider(t, 5*time.Minute, "http://home.example/oauth2/callback", "http://home.example/boss/back")
	policy := func(name, rule, more string, created int) string {
		return strings.Replace(authPolicy(name, onHome+", sectionName: "+rule, loginPolicy(issuer, more)),
			"namespace: "+siteNamespace+"}", fmt.Sprintf("namespace: %s, creationTimestamp: \"2026-01-0%dT00:00:00Z\"}", siteNamespace, created), 1)
	}
	another := func(policy string) string { return strings.Replace(policy, "{name: oidc}", "{name: other}", 1) } // client
	rules := siteRules("home", "home.example", `- name: app
  matches: [{path: {value: /app}}]
  backendRefs: [{name: v1, port: 8080}]
- name: boss
  matches: [{path: {value: /boss}}]
  backendRefs: [{name: v1, port: 8080}]
`)
	s := newSite(t, map[string]string{
		"keys.yaml": loginSecretOf(loginSecret) + "---\n" + keysSecret("other", "client-secret", loginSecret), "home.yaml": rules,
		"policy.yaml": policy("staff", "app", "", 1) + another(policy("bosses", "boss", "", 2)),
	})
	const app, boss = "http://home.example/app/x", "http://home.example/boss/x"
	s.answers(t, app, http.StatusFound)
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	s.says(t, "AuthPolicy bosses", "/oauth2/callback is taken: AuthPolicy "+siteNamespace+"/staff has it on home.example, so that nobody can log in there by this policy")
	const passes, led, refused = http.StatusOK, http.StatusFound, http.StatusUnauthorized
	logsIn := func(page string, want, onApp, onBoss int) {
		t.Helper()
		person := newBrowser(t, s.listener())
		if res, body := person.opens(page); res.StatusCode != want {
			t.Errorf("whoever logs in at %s is answered %d %q, want %d; %q", page, res.StatusCode, clipped([]byte(body)), want, person.trace)
		}
		for other, want := range map[string]int{app: onApp, boss: onBoss} {
			if res, _ := person.send(http.MethodGet, other, nil, nil); res.StatusCode != want {
				t.Errorf("whoever logs in at %s is then answered %d at %s, want %d", page, res.StatusCode, other, want)
			}
		}
	}
	logsIn(app, passes, passes, led)
	logsIn(boss, refused, led, led)

	s.write(t, "policy.yaml", policy("staff", "app", "", 1)+another(policy("bosses", "boss", "      callbackPath: /boss/back\n      logoutPath: /boss/leave\n", 2)))
	eventually(t, siteTimeout, func() error {
		if to := s.answers(t, boss, http.StatusFound).headers.Get("Location"); !strings.Contains(to, url.QueryEscape("/boss/back")) {
			return fmt.Errorf("people are led to %s", to)
		}
		return nil
	})
	logsIn(boss, passes, led, passes)
	logsIn(app, passes, passes, led)

	// Policies of one client have one session, though one wants fewer scopes.
	s.write(t, "policy.yaml", policy("staff", "app", "", 1)+policy("bosses", "boss", "      logoutPath: /boss/leave\n", 2))
	eventually(t, siteTimeout, func() error {
		if to := s.answers(t, boss, http.StatusFound).headers.Get("Location"); !strings.Contains(to, url.QueryEscape("/oauth2/callback")) {
			return fmt.Errorf("people are led to %s", to)
		}
		return nil
	})
	s.says(t, "AuthPolicy bosses", "All rules of the policy are in force")
	logsIn(boss, passes, passes, passes)
	logsIn(app, passes, passes, passes)
}

// TestLogInIsNoAnswerToPrograms protects that calls of gRPC get their codes, whatever a policy has those told
// who don't pass, with a session of another client or without one.
func TestLogInIsNoAnswerToPrograms(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	issuer := startProvider(t, 5*time.Minute, "http://home.example/oauth2/callback")
	const page, answer = "http://home.example/page", "responses: {unauthenticated: {redirect: /nobody}}\n"
	// Without a refresh token: whoever has one is led to log in again.
	policy := authPolicy("staff", onHome, strings.Replace(loginPolicy(issuer, answer), ", offline_access", "", 1))
	s := newSite(t, map[string]string{"keys.yaml": loginSecretOf(loginSecret), "policy.yaml": policy})
	s.answers(t, page, http.StatusFound)
	person := newBrowser(t, s.listener())
	if res, body := person.opens(page); res.StatusCode != http.StatusOK {
		t.Fatalf("whoever logs in is answered %d %q; %q", res.StatusCode, body, person.trace)
	}
	// The session is one of another client now.
	s.write(t, "policy.yaml", strings.Replace(policy, "clientID: "+loginClient, "clientID: other", 1))
	eventually(t, siteTimeout, func() error {
		if to := s.answers(t, page, http.StatusFound).headers.Get("Location"); !strings.Contains(to, "client_id=other") {
			return fmt.Errorf("people are led to %s", to)
		}
		return nil
	})
	for what, cookies := range map[string]map[string]string{"with a session": person.cookies["home.example"], "without one": {}} {
		b := newBrowser(t, s.listener())
		b.cookies["home.example"] = cookies
		res, _ := b.send(http.MethodPost, page, nil, map[string]string{"Content-Type": "application/grpc"})
		if code := res.Header.Get("Grpc-Status"); res.StatusCode != http.StatusOK || code != "16" {
			t.Errorf("a call %s is answered %d with the code %q, want 16", what, res.StatusCode, code)
		}
	}
}

// TestLogInCountsAsCredentials protects that conditions and limits know people by their sessions, on this port
// and for all ports, and that nobody uses up a limit who hasn't logged in.
func TestLogInCountsAsCredentials(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	issuer := startProvider(t, 5*time.Minute, "http://home.example/oauth2/callback")
	const home = "http://home.example"
	s := newSite(t, map[string]string{
		"keys.yaml": loginSecretOf(loginSecret),
		"policy.yaml": authPolicy("staff", onHome, loginPolicy(issuer, `authorization:
  one: {when: request.path == '/one', claims: {sub: [id1]}}
  two: {when: auth.claims.sub == 'id1', headers: {x-two: ["1"]}}
`)),
		"limits.yaml": limitPolicy("each", onHome, `limits:
  here: {rates: [{limit: 2, window: 24h}], counters: [auth.claims.sub], when: "request.path == '/here'"}
  all: {scope: Global, onFailure: Deny, rates: [{limit: 2, window: 24h}], counters: [auth.claims.sub], when: "request.path == '/all'"}
`),
	})
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	s.says(t, "RateLimitPolicy each", "All rules of the policy are in force")
	s.answers(t, home+"/", http.StatusFound)
	one, two := newBrowser(t, s.listener()), newBrowser(t, s.listener())
	two.user = "test-user2"
	one.headers = map[string]string{"X-Two": "1"}
	answered := func(what string, b *browser, path string, want ...int) {
		t.Helper()
		for i, status := range want {
			if res, body := b.send(http.MethodGet, home+path, nil, nil); res.StatusCode != status {
				t.Errorf("%s: request %d for %s is answered %d %q, want %d", what, i, path, res.StatusCode, clipped([]byte(body)), status)
			}
		}
	}
	const passes, led, refused, over = http.StatusOK, http.StatusFound, http.StatusForbidden, http.StatusTooManyRequests
	for _, path := range []string{"/here", "/all"} {
		answered("nobody", newBrowser(t, s.listener()), path, led, led, led)
	}
	for _, b := range []*browser{one, two} {
		if res, body := b.opens(home + "/"); res.StatusCode != http.StatusOK {
			t.Fatalf("whoever logs in is answered %d %q; %q", res.StatusCode, body, b.trace)
		}
	}
	answered("whom a condition is for", one, "/one", passes)
	answered("another", two, "/one", refused)
	answered("another", two, "/", passes)
	one.headers = nil
	answered("whom a condition on the person is for", one, "/", refused)
	one.headers = map[string]string{"X-Two": "1"}
	for _, path := range []string{"/here", "/all"} {
		answered("one", one, path, passes, passes, over)
		answered("the other", two, path, passes, passes, over)
	}
}
