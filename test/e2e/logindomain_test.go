//go:build linux

package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// TestLogInToADomain has people log in once for all hosts of a domain, at a provider that knows one URL of one
// of them, and protects that no backend of the domain gets their cookies.
func TestLogInToADomain(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	const callback = "http://login.shop.example/back"
	issuer := startProvider(t, 5*time.Minute, callback)
	const both = onHome + "}, {group: gateway.networking.k8s.io, kind: HTTPRoute, name: other"
	policy := func(more string) string { return authPolicy("staff", both, loginPolicy(issuer, more)) }
	s := newSite(t, map[string]string{
		"keys.yaml":   loginSecretOf(loginSecret),
		"home.yaml":   siteRoute("home", "login.shop.example", "v1") + siteRoute("other", "other.shop.example", "v2") + siteRoute("open", "open.shop.example", "v2"),
		"policy.yaml": policy("      redirectURL: " + callback + "\n      cookieDomain: shop.example\n      postLogoutRedirect: /bye?from=100\n"),
	})
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	const page = "http://other.shop.example/page?of=mine"
	s.answers(t, page, http.StatusFound)
	person := newBrowser(t, s.listener())
	res, body := person.opens(page)
	if res.StatusCode != http.StatusOK || res.Request.URL.String() != page {
		t.Fatalf("whoever logs in is answered %d %q at %s; %q", res.StatusCode, clipped([]byte(body)), res.Request.URL, person.trace)
	}
	for target, user := range map[string]string{page: "id1", "http://login.shop.example/": "id1", "http://open.shop.example/": ""} {
		res, body := person.send(http.MethodGet, target, nil, nil)
		var got echo.Answer
		if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s is answered %d %q", target, res.StatusCode, clipped([]byte(body)))
		}
		if got.Headers.Get("X-User") != user || strings.Contains(got.Headers.Get("Cookie"), "gatehouse") {
			t.Errorf("at %s the backend is told of %q, with the cookies %q", target, got.Headers.Get("X-User"), got.Headers.Get("Cookie"))
		}
	}
	res, _ = person.send(http.MethodGet, "http://login.shop.example/oauth2/logout", nil, nil)
	at, err := res.Location()
	if err != nil {
		t.Fatalf("logging out is answered %d", res.StatusCode)
	}
	if got := at.Query().Get("post_logout_redirect_uri"); got != "http://login.shop.example/bye?from=100" {
		t.Errorf("after the logout people get to %q, by %s", got, at)
	}
	if hint := at.Query(); hint.Has("id_token_hint") && hint.Get("id_token_hint") == "" {
		t.Errorf("the provider is given an empty hint: %s", at)
	}
	if res, _ := person.send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusFound {
		t.Errorf("on another host of the domain, after the logout, the answer is %d", res.StatusCode)
	}

	s.write(t, "policy.yaml", policy("      redirectURL: "+callback+"\n      cookieDomain: else.example\n"))
	s.says(t, "AuthPolicy staff", "isn't in cookieDomain")
	s.answers(t, page, http.StatusUnauthorized)
}
