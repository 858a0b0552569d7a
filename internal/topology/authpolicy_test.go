package topology

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/policy/auth"
)

// authWorld has an AuthPolicy p with the rules of a text, and Secrets for them.
func authWorld(t *testing.T, rules string, more ...string) (*world, func() (*auth.Policy, *ir.Access)) {
	t.Helper()
	w := newWorld(settings{Tenants: true, SystemAuthorities: "/etc/ssl/cert.pem"}.options())
	const gw = `
kind: GatewayClass
metadata: {name: ours}
spec: {controllerName: gatehouse.dev/controller}
---
kind: Gateway
metadata: {namespace: default, name: g}
spec: {gatewayClassName: ours, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
kind: AuthPolicy
metadata: {namespace: default, name: p}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]
`
	w.set(t, decode(t, gw+"  "+strings.ReplaceAll(rules, "\n", "\n  ")+strings.Join(append([]string{""}, more...), "\n---\n"))...)
	return w, func() (p *auth.Policy, a *ir.Access) {
		w.engine.View(func(c *flow.Ctx) {
			p, _ = flow.Get(c, w.graph.AuthPolicies, object.Name{Namespace: "default", Name: "p"})
			in := w.graph.Auth.OnListener(c, ListenerOf(object.Name{Namespace: "default", Name: "g"}, object.Name{}, "http"))
			if in != nil {
				a = auth.Access(in.Effective, nil)
			}
		})
		return p, a
	}
}

// What is broken lets nobody pass, says what is wrong, and costs no other rule.
func TestBrokenAuthRules(t *testing.T) {
	const keys = "kind: Secret\nmetadata: {namespace: default, name: keys}\ndata: {a: c2VjcmV0, b: c2VjcmV0Cg==, c: ''}"
	const users = "kind: Secret\nmetadata: {namespace: default, name: users}\ndata: {.htpasswd: YTp7U0hBfXFpczJhWGhXckxRdXV2QklLZ1BrTzd0N3N4UT0KYjokYXByMSR4CgpjCg==, other: ''}"
	for name, c := range map[string]struct {
		rules   string
		access  string // tokens, keys, users, conditions; "nobody" where nobody passes
		problem string // in the condition; empty for none
	}{
		"a Secret that does not exist": {
			"authentication: {x: {apiKey: {secretRef: {name: none}}}, y: {apiKey: {secretRef: {name: keys}}}}", "a",
			"spec.authentication[x].apiKey.secretRef names Secret default/none, which does not exist",
		},
		"nothing but a Secret that does not exist": {
			"authentication: {x: {basic: {secretRef: {name: none}}}}", "nobody", "Secret default/none, which does not exist",
		},
		"two kinds of credentials": {
			"authentication: {x: {anonymous: {}, apiKey: {secretRef: {name: keys}}}}", "nobody", "exactly one of jwt, oidc, apiKey, basic, clientCertificate and anonymous",
		},
		"no kind of credentials": {"authentication: {x: {}}", "nobody", "exactly one of jwt"},
		"a name of a certificate that is none": {
			"authentication: {x: {clientCertificate: {subjectAltNames: [{dns: 'a.*.b'}]}}}", "nobody",
			"spec.authentication[x].clientCertificate.subjectAltNames[0].dns is \"a.*.b\"; an asterisk stands at the beginning",
		},
		"a name of a certificate that is empty": {
			"authentication: {x: {clientCertificate: {subjectAltNames: [{}]}}}", "nobody", "subjectAltNames[0] needs exactly one of dns and uri",
		},
		"a certificate":        {"authentication: {x: {clientCertificate: {}}}", "any certificate", ""},
		"answers and no rules": {"overrides: {strategy: merge, responses: {forbidden: {status: 404}}}", "never", "spec.overrides has no rules"},
		"an answer of another status": {
			"authentication: {x: {anonymous: {}}}\nresponses: {forbidden: {status: 200}}", "open", "spec.responses.forbidden.status is 200; it must be from 400 to 499",
		},
		"a redirect of another status": {
			"authentication: {x: {anonymous: {}}}\nresponses: {unauthenticated: {status: 404, redirect: /x}}", "open", "unauthenticated.status is 404, with which there is no redirect",
		},
		"a redirect elsewhere": {
			"authentication: {x: {anonymous: {}}}\nresponses: {unauthenticated: {redirect: 'javascript:x'}}", "open", `redirect is "javascript:x"; it must be a URL`,
		},
		"a header of an answer that others set": {
			"authentication: {x: {anonymous: {}}}\nresponses: {forbidden: {headers: {Content-Length: '0'}}}", "open", "headers[Content-Length] can't be set",
		},
		"an expression with a mistake": {
			"authorization: {x: {when: 'request.pth == \"/\"', methods: [GET]}}", "never",
			"spec.authorization[x].when is no condition on a request: column 9: request.",
		},
		"an expression of another type": {
			"authorization: {x: {when: 'request.path', methods: [GET]}}", "never",
			"spec.authorization[x].when is no condition on a request: column 1: the expression is of type string",
		},
		"an expression and nothing to hold": {"authorization: {x: {when: 'true'}}", "never", "spec.authorization[x] says nothing that must hold"},
		"the host as a header":              {"authorization: {x: {headers: {Host: [a]}}}", "never", "spec.authorization[x].headers[Host] can't be looked at"},
		"a header in two spellings":         {"authorization: {x: {headers: {X-A: [a], x-a: [b]}}}", "never", "spec.authorization[x].headers[x-a] is there twice"},
		"a header of no value":              {"authorization: {x: {headers: {x-a: ['']}}}", "never", "spec.authorization[x].headers[x-a] has no values"},
		"a key twice, and an empty one": {
			"authentication: {x: {apiKey: {secretRef: {name: keys}}}}", "a", `entries "a" and "b" are the same key`,
		},
		"other hashes": {
			"authentication: {x: {basic: {secretRef: {name: users}}}}", "a", "line 2, of user",
		},
		"an entry that is missing": {
			"authentication: {x: {basic: {secretRef: {name: users, key: nonesuch}}}}", "nobody", `has no entry "nonesuch"; it has ".htpasswd", "other"`,
		},
		"a header that others set": {
			"authentication: {x: {apiKey: {secretRef: {name: keys}, identityHeader: X-Forwarded-For}}}", "nobody", `identityHeader can't be "x-forwarded-for"`,
		},
		"an address that is none": {
			"authorization: {x: {addresses: {allow: [192.0.2.0/24, office]}}}", "never", `addresses.allow[1] is "office"`,
		},
		"a condition that says nothing": {"authorization: {x: {}}", "never", "says nothing that must hold; set addresses"},
		"keys that are HTML": {
			"authentication: {x: {jwt: {issuer: i, jwks: {inline: '<html>'}}}}", "nobody", "is no JSON Web Key Set",
		},
		"keys that are shared secrets": {
			`authentication: {x: {jwt: {issuer: i, jwks: {inline: '{"keys":[{"kty":"oct","k":"AAAA"}]}'}}}}`, "nobody", "it is a shared secret (kty oct)",
		},
		"no rules":     {"defaults: {}", "never", "spec.defaults has no rules"},
		"nothing":      {"", "never", "spec has no rules"},
		"a good rule":  {"authorization: {x: {addresses: {deny: [192.0.2.1]}}}", "condition", ""},
		"an anonymous": {"authentication: {x: {anonymous: {}}}", "open", ""},
	} {
		_, look := authWorld(t, c.rules, keys, users)
		p, a := look()
		if got := accessText(a); got != c.access {
			t.Errorf("%s: %q passes, want %q", name, got, c.access)
		}
		if told := strings.Join(p.Entries, "; "); told != "" {
			if p.Refused != nil || c.problem == "" || !strings.Contains(told, c.problem) {
				t.Errorf("%s: refused %+v, but for %q; want %q alone", name, p.Refused, told, c.problem)
			}
			continue
		}
		switch {
		case c.problem == "" && p.Refused != nil:
			t.Errorf("%s: refused: %s", name, p.Refused.Message)
		case c.problem != "" && (p.Refused == nil || !strings.Contains(p.Refused.Message, c.problem)):
			t.Errorf("%s: %+v, want %q", name, p.Refused, c.problem)
		}
		if p.Refused != nil && strings.Contains(p.Refused.Message, "secret\"") {
			t.Errorf("%s: a key is told: %s", name, p.Refused.Message)
		}
	}
}

func accessText(a *ir.Access) string {
	switch {
	case a == nil:
		return "nothing"
	case a.IsOpen():
		return "open"
	}
	var out []string
	for _, k := range a.Keys {
		for _, key := range k.Keys {
			out = append(out, key.Client)
		}
	}
	for _, p := range a.Passwords {
		for _, u := range p.Users {
			out = append(out, u.User)
		}
	}
	for range a.Certificates {
		out = append(out, "any certificate")
	}
	for _, token := range a.Tokens {
		out = append(out, token.Issuer)
	}
	for _, condition := range a.Conditions {
		if condition.Never {
			out = append(out, "never")
		} else {
			out = append(out, "condition")
		}
	}
	if len(out) == 0 && a.Authenticated {
		return "nobody"
	}
	return strings.Join(out, " ")
}

// A Secret that is rotated is in force with the next transaction, and one that goes lets
// nobody pass.
func TestAuthSecretRotates(t *testing.T) {
	w, look := authWorld(t, "authentication: {x: {apiKey: {secretRef: {name: keys}}}}")
	if _, a := look(); accessText(a) != "nobody" {
		t.Errorf("before the Secret: %s", accessText(a))
	}
	secret := func(client string) *corev1.Secret {
		s := &corev1.Secret{Data: map[string][]byte{client: []byte("key")}}
		s.Namespace, s.Name = "default", "keys"
		return s
	}
	w.set(t, secret("alice"))
	if _, a := look(); accessText(a) != "alice" {
		t.Errorf("with the Secret: %s", accessText(a))
	}
	w.set(t, secret("bob"))
	if _, a := look(); accessText(a) != "bob" {
		t.Errorf("with another: %s", accessText(a))
	}
}

// Credentials go on to backends unless a rule says otherwise.
func TestHideCredentials(t *testing.T) {
	const secrets = "kind: Secret\nmetadata: {namespace: default, name: s}\ndata: {a: c2VjcmV0, .htpasswd: YTp7U0hBfXFpczJhWGhXckxRdXV2QklLZ1BrTzd0N3N4UT0K}"
	for said, want := range map[string]bool{"": false, ", hideCredentials: true": true, ", hideCredentials: false": false} {
		_, look := authWorld(t, `authentication:
  k: {apiKey: {secretRef: {name: s}`+said+`}}
  p: {basic: {secretRef: {name: s}`+said+`}}
  t: {jwt: {issuer: i, jwks: {inline: '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'}`+said+`}}`, secrets)
		_, a := look()
		if a.Keys[0].Hide != want || a.Passwords[0].Hide != want || a.Tokens[0].Hide != want {
			t.Errorf("%q: keys %t, passwords %t, tokens %t", said, a.Keys[0].Hide, a.Passwords[0].Hide, a.Tokens[0].Hide)
		}
	}
}
