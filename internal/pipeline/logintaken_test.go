package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	loginGateway = `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: team, name: web},
  spec: {gatewayClassName: gatehouse, listeners: [
    {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}, {name: more, port: 81, protocol: HTTP}]}}`
	shortLogin = `issuer: "https://id.example.com", clientID: shop, clientSecretRef: {name: client}`
)

// loginRoute is a route for all of a host, or for an exact path.
func loginRoute(namespace, name, path string) string {
	match := ""
	if path != "" {
		match = fmt.Sprintf("matches: [{path: {type: Exact, value: %s}}], ", path)
	}
	return fmt.Sprintf(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: %s, name: %s},
  spec: {parentRefs: [{namespace: team, name: web}], hostnames: [app.example.com], rules: [{%sbackendRefs: [{name: s, port: 80}]}]}}`, namespace, name, match)
}

// loginOf is a policy of a year by which people log in.
func loginOf(year int, name, kind, target, more string) string {
	return fmt.Sprintf(`{apiVersion: gatehouse.dev/v1alpha1, kind: AuthPolicy, metadata: {namespace: team, name: %s, creationTimestamp: "%d-01-01T00:00:00Z"},
  spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: %s, name: %s}], authentication: {people: {oidc: {%s%s}}}}}`, name, year, kind, target, shortLogin, more)
}

// TestLoginsWithoutTheirPathsSaySo protects people from a login by which nobody comes back, without a word
// about it: another route or an older policy's login has a path of it on a host.
func TestLoginsWithoutTheirPathsSaySo(t *testing.T) {
	const (
		field    = "spec.authentication[people].oidc"
		callback = field + ".callbackPath: /oauth2/callback is taken: %s has it on app.example.com, so that nobody can log in there by this policy; choose another path, and register it with the provider"
		logout   = field + ".logoutPath: /oauth2/logout is taken: %s has it on app.example.com, so that nobody can log out there of what this policy guards; choose another path"
	)
	for name, c := range map[string]struct {
		objects []string
		want    map[string]string // of policies
	}{
		"nobody has it": {
			[]string{loginRoute("team", "app", ""), loginOf(2020, "login", "HTTPRoute", "app", "")},
			map[string]string{"login": ""},
		},
		"a route has it": {
			[]string{
				loginRoute("team", "app", ""), loginRoute("team", "old", "/oauth2/callback"), loginRoute("team", "near", "/oauth2/logout/x"),
				loginOf(2020, "login", "HTTPRoute", "app", ""),
			},
			map[string]string{"login": fmt.Sprintf(callback, "HTTPRoute team/old")},
		},
		"a route of others has it": {
			[]string{loginRoute("team", "app", ""), loginRoute("theirs", "secret", "/oauth2/logout"), loginOf(2020, "login", "HTTPRoute", "app", "")},
			map[string]string{"login": fmt.Sprintf(logout, "another namespace's HTTPRoute")},
		},
		"the route itself has it": {
			[]string{loginRoute("team", "app", "/oauth2/callback"), loginOf(2020, "login", "HTTPRoute", "app", "")},
			map[string]string{"login": ""},
		},
		"the route itself has it, in a rule that nothing guards": {
			[]string{
				`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: team, name: app}, spec: {parentRefs: [{name: web}], hostnames: [app.example.com], rules: [
  {name: guarded, backendRefs: [{name: s, port: 80}]}, {name: open, matches: [{path: {type: Exact, value: /oauth2/callback}}], backendRefs: [{name: s, port: 80}]}]}}`,
				loginOf(2020, "login", "HTTPRoute", "app, sectionName: guarded", ""),
			},
			map[string]string{"login": ""},
		},
		"routes that the login guards have it": {
			[]string{
				loginRoute("team", "app", ""), loginRoute("team", "one", "/oauth2/callback"), loginRoute("theirs", "two", "/oauth2/callback"),
				loginOf(2020, "login", "Gateway", "web", ""),
			},
			map[string]string{"login": ""},
		},
		"an older login has it": {
			[]string{
				loginRoute("team", "app", ""), loginRoute("team", "admin", "/admin"),
				strings.Replace(loginOf(2021, "young", "HTTPRoute", "app", ""), "shop", "other", 1), loginOf(2020, "old", "HTTPRoute", "admin", ""),
			},
			map[string]string{"old": "", "young": fmt.Sprintf(callback+"; "+logout, "AuthPolicy team/old", "AuthPolicy team/old")},
		},
		"an older login of the same client has it": {
			[]string{
				loginRoute("team", "app", ""), loginRoute("team", "admin", "/admin"),
				loginOf(2021, "young", "HTTPRoute", "app", ", scopes: [email]"), loginOf(2020, "old", "HTTPRoute", "admin", ""),
			},
			map[string]string{"old": "", "young": ""},
		},
		"a route has the path of one of two logins of one client": {
			[]string{
				loginRoute("team", "app", ""), loginRoute("team", "admin", "/admin"), loginRoute("team", "old", "/back"),
				loginOf(2020, "first", "HTTPRoute", "admin", ""), loginOf(2021, "second", "HTTPRoute", "app", ", callbackPath: /back"),
			},
			map[string]string{"first": "", "second": strings.Replace(fmt.Sprintf(callback, "HTTPRoute team/old"), "/oauth2/callback", "/back", 1)},
		},
		"logins with paths of their own": {
			[]string{
				loginRoute("team", "app", ""), loginRoute("team", "admin", "/admin"), loginOf(2020, "old", "HTTPRoute", "admin", ""),
				loginOf(2021, "young", "HTTPRoute", "app", ", callbackPath: /back, logoutPath: /leave"),
			},
			map[string]string{"old": "", "young": ""},
		},
		"the login of the Gateway has it": {
			[]string{
				loginRoute("team", "app", ""), loginRoute("team", "admin", "/admin"),
				strings.Replace(loginOf(2021, "young", "HTTPRoute", "app", ", logoutPath: /leave"), "shop", "other", 1), loginOf(2020, "old", "Gateway", "web", ""),
			},
			map[string]string{"old": "", "young": fmt.Sprintf(callback, "AuthPolicy team/old")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newLogins(t)
			for _, o := range c.objects {
				p.set(o)
			}
			for policy, want := range c.want {
				if got := acceptedOf(p, policy); got != strings.TrimSuffix("True The policy is valid; "+want, "; ") {
					t.Errorf("%s says:\n%s, want of notes:\n%s", policy, got, want)
				}
			}
		})
	}
}

// What is said follows from what is there now, and is not longer than a person reads.
func TestTakenPathsComeAndGo(t *testing.T) {
	p := newLogins(t)
	p.set(loginOf(2020, "login", "Gateway", "web", ""))
	for i := range 12 {
		host := fmt.Sprintf("app%02d.example.com", i)
		p.set(strings.ReplaceAll(loginRoute("team", fmt.Sprintf("app%d", i), ""), "app.example.com", host))
		p.set(strings.ReplaceAll(loginRoute("team", fmt.Sprintf("back%d", i), "/oauth2/callback"), "app.example.com", host))
	}
	for i := range 12 { // which guards the path of each host with nothing
		p.set(fmt.Sprintf(`{apiVersion: gatehouse.dev/v1alpha1, kind: AuthPolicy, metadata: {namespace: team, name: open%d},
  spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: back%[1]d}], authentication: {all: {anonymous: {}}}}}`, i))
	}
	got := acceptedOf(p, "login")
	if !strings.Contains(got, "HTTPRoute team/back7 has it on app07.example.com and so on at 4 more") || strings.Contains(got, "back8") || strings.Count(got, "back0 ") != 1 {
		t.Errorf("of many hosts it says: %s", got)
	}
	p.set(loginOf(2020, "login", "Gateway", "web", ", callbackPath: /back"))
	if got := acceptedOf(p, "login"); got != "True The policy is valid" {
		t.Errorf("with another path it says: %s", got)
	}
}

// newLogins is a Gateway on which people may log in.
func newLogins(t *testing.T) *provisioned {
	p := newProvisioned(t)
	p.set(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayParameters, metadata: {namespace: platform, name: class}, spec: {backends: {externalNames: [id.example.com]}}}`)
	p.set(`{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: gatehouse}, spec: {controllerName: gatehouse.dev/controller,
  parametersRef: {group: gatehouse.dev, kind: GatewayParameters, namespace: platform, name: class}}}`)
	p.set(loginGateway)
	p.set(`{apiVersion: v1, kind: Secret, metadata: {namespace: team, name: client}, data: {client-secret: Z2VoZWlt}}`)
	answer := keyset.Answer{Keys: `{"keys":[]}`, Endpoints: keyset.Endpoints{Authorization: "https://id.example.com/a", Token: "https://id.example.com/t"}}
	p.Update(func(tx *flow.Tx) {
		p.TakeKeySets(tx, map[keyset.Key]*keyset.Answer{{Location: keyset.Location{Issuer: "https://id.example.com"}}: &answer})
	})
	return p
}

// acceptedOf is what the Accepted condition of a policy says.
func acceptedOf(p *provisioned, name string) (out string) {
	p.Engine.View(func(c *flow.Ctx) {
		if s, ok := flow.Get(c, p.AuthPolicyStatus, object.Name{Namespace: "team", Name: name}); ok && len(s.Ancestors) > 0 {
			out = string(s.Ancestors[0].Conditions[0].Status) + " " + s.Ancestors[0].Conditions[0].Message
		}
	})
	return out
}

// TestRoutesSayWhatLoginsTake protects an application from losing a path of its own without a word: a login beside it on
// the host has people come back there.
func TestRoutesSayWhatLoginsTake(t *testing.T) {
	p := newLogins(t)
	p.set(loginRoute("team", "app", ""))
	p.set(strings.Replace(loginRoute("team", "admin", "/admin"), "type: Exact", "type: PathPrefix", 1))
	says := func() (out string) {
		p.Engine.View(func(c *flow.Ctx) {
			if s, ok := flow.Get(c, p.RouteStatus, object.Key{Kind: kind.HTTPRoute, Name: object.Name{Namespace: "team", Name: "app"}}); ok {
				out = s.Parents[0].Conditions[0].Message
			}
		})
		return out
	}
	p.set(loginOf(2020, "login", "HTTPRoute", "admin", ""))
	for _, path := range []string{"/oauth2/callback", "/oauth2/logout"} {
		if got := says(); !strings.Contains(got, fmt.Sprintf("rule 0 gets no requests for %q of host \"app.example.com\", which is a path of the login of AuthPolicy team/login", path)) {
			t.Errorf("of %s it says: %s", path, got)
		}
	}
	p.set(loginOf(2020, "login", "HTTPRoute", "admin", ", callbackPath: /admin/back, logoutPath: /admin/leave"))
	if got := says(); strings.Contains(got, "login") {
		t.Errorf("with paths of its own the login is in: %s", got)
	}
	p.set(loginOf(2020, "login", "Gateway", "web", ""))
	if got := says(); strings.Contains(got, "login") {
		t.Errorf("where the login guards all it says: %s", got)
	}
}
