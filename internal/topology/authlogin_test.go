package topology

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/keyset"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	clientOf = "kind: Secret\nmetadata: {namespace: default, name: client}\ndata: {client-secret: c2VjcmV0Cg==, empty: ''}" // secret
	loginAt  = "issuer: 'https://id.example', clientID: shop, clientSecretRef: {name: client}"
)

var loginKey = keyset.Key{Location: keyset.Location{Issuer: "https://id.example"}}

func loginRules(fields string) string {
	return "authentication: {people: {oidc: {" + fields + "}}}"
}

// How people log in takes its parts from a policy, a Secret and the issuer, and lacks none of them.
func TestLogin(t *testing.T) {
	w := newFetchWorld(t, loginRules(loginAt+", scopes: [email], claimsToHeaders: [{claim: email, header: X-User}]"), clientOf)
	access := func() (a *ir.Access) {
		w.engine.View(func(c *flow.Ctx) {
			gateway := object.Name{Namespace: "default", Name: "g"}
			a = w.graph.Access(c, gateway, w.graph.Auth.OnListener(c, ListenerOf(gateway, object.Name{}, "http")).Effective)
		})
		return a
	}
	if a := access(); a.Login != nil || !a.Authenticated {
		t.Fatalf("before the issuer has answered: %+v", a)
	}
	answer := keyset.Answer{Keys: "A", Endpoints: keyset.Endpoints{Authorization: "https://id.example/authorize", Token: "https://Token.id.example:8443/token"}}
	w.learn(map[keyset.Key]*keyset.Answer{loginKey: &answer})
	a := access()
	l := a.Login
	if l == nil || !a.Authenticated || len(a.Tokens) != 0 || a.Hidden[0] != "x-user" {
		t.Fatalf("who may pass: %+v", a)
	}
	b := l.Backend.Backend()
	if l.Tokens.JWKS != "A" || l.Tokens.Audiences[0] != "shop" || l.CallbackPath != "/oauth2/callback" || l.LogoutPath != "/oauth2/logout" ||
		b.DNS != "token.id.example" || b.Port != 8443 || !b.Outside || b.TLS.ServerName != "token.id.example" || b.TLS.Authorities.IsZero() {
		t.Errorf("login %+v at %+v", l, b)
	}
	secrets := func(of ir.LoginSession) (client, session string) {
		w.engine.View(func(c *flow.Ctx) {
			client, session = w.graph.LoginSecret(c, of, false).Reveal(), w.graph.LoginSecret(c, of, true).Reveal()
		})
		return client, session
	}
	client, session := secrets(l.Session)
	if client != "secret" || len(session) != 64 || strings.Contains(session, "secret") {
		t.Errorf("the secrets are %q and %q", client, session)
	}
	if client, session := secrets(ir.LoginSession{Secret: l.Session.Secret, Entry: "other"}); client != "" || session != "" {
		t.Errorf("another entry has the secrets %q and %q", client, session)
	}
	if l.Session.ClientSecret() == l.Session.Key() {
		t.Error("the two secrets have one key")
	}
	// Who only signs tokens has nobody log in.
	w.learn(map[keyset.Key]*keyset.Answer{loginKey: {Keys: "A"}})
	if _, accepted, _ := w.look(); accepted.Status != "False" || !strings.Contains(accepted.Message, "names no authorization_endpoint, or no token_endpoint") {
		t.Errorf("without endpoints: %s: %s", accepted.Status, accepted.Message)
	}
	if a := access(); a.Login != nil || !a.Authenticated {
		t.Errorf("without endpoints: %+v", a)
	}
	// Nor does an issuer lead proxies to what only a cluster can reach.
	for _, url := range []string{"https://payments.victim.svc.cluster.local/", "https://payments/", "https://169.254.169.254/", "https://[::1]/", "https://0x7f000001/", "https://localhost/"} {
		w.learn(map[keyset.Key]*keyset.Answer{loginKey: {Keys: "A", Endpoints: keyset.Endpoints{Authorization: "https://id.example/a", Token: url}}})
		if _, accepted, _ := w.look(); access().Login != nil || accepted.Status != "False" {
			t.Errorf("proxies ask %s for tokens: %s", url, accepted.Message)
		}
	}
}

// What is wrong with a login is said at its field, and nobody logs in.
func TestBrokenLogin(t *testing.T) {
	const at = "spec.authentication[people].oidc"
	for name, c := range map[string]struct{ rules, problem string }{
		"no Secret":           {loginRules(strings.Replace(loginAt, "name: client", "name: none", 1)), at + ".clientSecretRef names Secret default/none, which does not exist"},
		"no entry":            {loginRules(strings.Replace(loginAt, "name: client", "name: client, key: other", 1)), `has no entry "other"`},
		"an empty secret":     {loginRules(strings.Replace(loginAt, "name: client", "name: client, key: empty", 1)), `whose entry "empty" is no secret of a client`},
		"http":                {loginRules(strings.Replace(loginAt, "https://id.example", "http://id.example", 1)), at + `.issuer is "http://id.example", which is no https URL`},
		"a scope":             {loginRules(loginAt + `, scopes: ['a b']`), at + ".scopes[0]"},
		"a format":            {loginRules(loginAt + `, callbackPath: '/%REQ(cookie)%'`), at + ".callbackPath is"},
		"dots":                {loginRules(loginAt + `, logoutPath: '/a/../b'`), at + ".logoutPath is"},
		"everything":          {loginRules(loginAt + `, callbackPath: /`), at + ".callbackPath is"},
		"one path":            {loginRules(loginAt + `, callbackPath: /a, logoutPath: /a`), at + ".logoutPath is"},
		"a domain of a label": {loginRules(loginAt + `, cookieDomain: example`), at + ".cookieDomain is"},
		"an address":          {loginRules(loginAt + `, cookieDomain: 192.0.2.1`), at + ".cookieDomain is"},
		"another domain":      {loginRules(loginAt + `, redirectURL: 'https://a.example.com/x', cookieDomain: ample.com`), at + ".redirectURL is"},
		"a URL without path":  {loginRules(loginAt + `, redirectURL: 'https://a.example.com'`), at + ".redirectURL is"},
		"a URL with a query":  {loginRules(loginAt + `, redirectURL: 'https://a.example.com/x?y=z'`), at + ".redirectURL is"},
		"two callbacks":       {loginRules(loginAt + `, redirectURL: 'https://a.example.com/x', callbackPath: /x`), at + ".callbackPath stands beside redirectURL"},
		"nowhere to get to":   {loginRules(loginAt + `, postLogoutRedirect: 'bye'`), at + ".postLogoutRedirect is"},
		"a format after all":  {loginRules(loginAt + `, postLogoutRedirect: '/%REQ(cookie)%'`), at + ".postLogoutRedirect is"},
		"a reserved header":   {loginRules(loginAt + `, claimsToHeaders: [{claim: sub, header: Authorization}]`), at + ".claimsToHeaders[0].header"},
		"no such Service":     {loginRules(loginAt + `, backendRef: {name: none, port: 80}`), at + ".backendRef"},
		"two logins":          {"authentication: {people: {oidc: {" + loginAt + "}}, z: {oidc: {" + loginAt + "}}}", "spec.authentication[z].oidc is the second one"},
		"nobody is to log in": {"authentication: {people: {oidc: {" + loginAt + "}}, z: {anonymous: {}}}", at + " leads nobody to log in"},
		"two kinds":           {"authentication: {people: {oidc: {" + loginAt + "}, anonymous: {}}}", "needs exactly one of jwt, oidc"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFetchWorld(t, c.rules, clientOf)
			w.learn(map[keyset.Key]*keyset.Answer{loginKey: {Keys: "A", Endpoints: keyset.Endpoints{Authorization: "https://id.example/a", Token: "https://id.example/t"}}})
			_, accepted, _ := w.look()
			if accepted.Status != "False" || !strings.Contains(accepted.Message, c.problem) {
				t.Errorf("%s: %s", accepted.Status, accepted.Message)
			}
			w.engine.View(func(cx *flow.Ctx) {
				gateway := object.Name{Namespace: "default", Name: "g"}
				a := w.graph.Access(cx, gateway, w.graph.Auth.OnListener(cx, ListenerOf(gateway, object.Name{}, "http")).Effective)
				if logs := a.Login != nil; logs != (name == "two logins") || a.IsOpen() && !strings.Contains(c.rules, "z: {anonymous") {
					t.Errorf("who may pass: %+v", a)
				}
			})
		})
	}
}
