//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// TestLogInBesideOthers protects that no backend gets cookies of a session, wherever browsers send them: to
// rules of the host that no login guards or another one does, to other ports, and to hosts that a wildcard
// has the names of.
func TestLogInBesideOthers(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	issuer := startProvider(t, 5*time.Minute, "http://home.example/app/back", "http://home.example/boss/back", "http://any.wild.example/oauth2/callback", "http://shut.example/oauth2/callback")
	on := func(listener, manifest string) string {
		return strings.Replace(manifest, "{name: gw}", "{name: gw, sectionName: "+listener+"}", 1)
	}
	s := newSite(t, map[string]string{
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}", "{name: other, port: 81, protocol: HTTP}", "{name: shut, port: 82, protocol: HTTP}"),
		"keys.yaml":    loginSecretOf(loginSecret) + keysSecret("keys", "robot", "k3y"),
		"home.yaml": on("http", siteRules("home", "home.example", `- name: app
  matches: [{path: {value: /app}}]
  backendRefs: [{name: v1, port: 8080}]
- name: boss
  matches: [{path: {value: /boss}}]
  backendRefs: [{name: v1, port: 8080}]
- name: keys
  matches: [{path: {value: /keys}}]
  backendRefs: [{name: v2, port: 8080}]
- backendRefs: [{name: v2, port: 8080}]
`)),
		"wild.yaml":  on("http", siteRoute("wild", `"*.wild.example"`, "v1")),
		"exact.yaml": on("other", siteRoute("exact", "any.wild.example", "v2")),
		"other.yaml": on("other", siteRoute("other", `"*.example"`, "v2")),
		"shut.yaml":  on("shut", siteRoute("shut", "shut.example", "v1")),
		"exempt.yaml": on("shut", siteRules("exempt", "shut.example", `- name: exempt
  matches: [{path: {value: /exempt}}]
  backendRefs: [{name: v2, port: 8080}]
`)),
		"policy.yaml": authPolicy("staff", onHome+", sectionName: app", loginPolicy(issuer, "      callbackPath: /app/back\n      logoutPath: /app/leave\n")) +
			authPolicy("bosses", onHome+", sectionName: boss", loginPolicy(issuer, "      callbackPath: /boss/back\n      logoutPath: /boss/leave\n")) +
			authPolicy("robots", onHome+", sectionName: keys", needsKeys) +
			authPolicy("gate", "kind: Gateway, name: gw, sectionName: other", needsKeys) +
			authPolicy("inside", "kind: Gateway, name: gw, sectionName: shut", loginPolicy(issuer, "")) +
			authPolicy("guests", "kind: HTTPRoute, name: wild", loginPolicy(issuer, "")),
	})
	for _, policy := range []string{"staff", "bosses", "robots", "gate", "inside", "guests"} {
		s.says(t, "AuthPolicy "+policy, "All rules of the policy are in force")
	}
	const app, boss, wild = "http://home.example/app/x", "http://home.example/boss/x", "http://any.wild.example/x"
	person := newBrowser(t, s.listener())
	for _, page := range []string{app, boss, wild} {
		s.answers(t, page, http.StatusFound)
		if res, body := person.opens(page); res.StatusCode != http.StatusOK {
			t.Fatalf("whoever logs in at %s is answered %d %q; %q", page, res.StatusCode, body, person.trace)
		}
	}

	// gets sends the cookies of a host in three headers, among others, and is what the backend gets.
	gets := func(listener, host, target string) {
		t.Helper()
		var session []string
		for name, value := range person.cookies[host] {
			session = append(session, name+"="+value)
		}
		if len(session) < 4 {
			t.Fatalf("the cookies of %s are %v", host, session)
		}
		half := len(session) / 2
		b := newBrowser(t, listener)
		b.lines = []string{"a=1; " + strings.Join(session[:half], "; "), strings.Join(session[half:], ";") + ";b=2", "c=__Host-gatehouse-; __Host-d=4"}
		res, body := b.send(http.MethodGet, target, nil, nil)
		var got echo.Answer
		if err := json.Unmarshal([]byte(body), &got); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s is answered %d %q", target, res.StatusCode, body)
			return
		}
		cookies := strings.Split(strings.Join(got.Headers.Values("Cookie"), "; "), "; ")
		slices.Sort(cookies) // Envoy orders those of guarded rules at random
		if want := []string{"__Host-d=4", "a=1", "b=2", "c=__Host-gatehouse-"}; !slices.Equal(cookies, want) {
			t.Errorf("the backend of %s gets the cookies %q, want %q", target, cookies, want)
		}
	}
	at := func(port int) string { return net.JoinHostPort(s.address, strconv.Itoa(port+portOffset)) }
	other := at(81)
	gets(s.listener(), "home.example", app)
	gets(s.listener(), "home.example", boss)
	gets(s.listener(), "home.example", "http://home.example/")
	gets(s.listener(), "home.example", "http://home.example/keys?key=k3y")
	gets(other, "home.example", "http://home.example/on-another-port-by-a-wildcard?key=k3y")
	gets(s.listener(), "any.wild.example", wild)
	gets(other, "any.wild.example", "http://any.wild.example/on-another-port-by-its-name?key=k3y")

	// What guards the listener stays in force.
	b := newBrowser(t, other)
	for _, host := range []string{"home.example", "any.wild.example"} {
		if res, _ := b.send(http.MethodGet, "http://"+host+"/", nil, nil); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s is answered %d without a key", host, res.StatusCode)
		}
	}
	inside := newBrowser(t, at(82))
	if res, body := inside.opens("http://shut.example/"); res.StatusCode != http.StatusOK {
		t.Errorf("whoever logs in at a listener is answered %d %q; %q", res.StatusCode, body, inside.trace)
	}
	person.cookies["shut.example"] = inside.cookies["shut.example"]
	gets(at(82), "shut.example", "http://shut.example/")
	s.write(t, "exempt-policy.yaml", authPolicy("exempt", "kind: HTTPRoute, name: exempt", "authentication: {all: {anonymous: {}}}"))
	eventually(t, siteTimeout, func() error {
		if res, _ := newBrowser(t, at(82)).send(http.MethodGet, "http://shut.example/exempt", nil, nil); res.StatusCode != http.StatusOK {
			return fmt.Errorf("what is exempt is answered %d", res.StatusCode)
		}
		return nil
	})
	gets(at(82), "shut.example", "http://shut.example/exempt")
	gets(at(82), "shut.example", "http://shut.example/")

	// The session of both policies ends, wherever people log out.
	if res, _ := person.send(http.MethodGet, "http://home.example/app/leave", nil, nil); res.StatusCode != http.StatusFound {
		t.Errorf("logging out is answered %d", res.StatusCode)
	}
	for page, want := range map[string]int{app: http.StatusFound, boss: http.StatusFound} {
		if res, _ := person.send(http.MethodGet, page, nil, nil); res.StatusCode != want {
			t.Errorf("then %s is answered %d, want %d", page, res.StatusCode, want)
		}
	}
}
