package ir

import (
	"time"
	"unique"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Login has people log in at an issuer of tokens (OpenID Connect Core 1.0, section 3.1). What it
// says of them is the ID token, which is among no credentials that a client brings itself.
type Login struct {
	Rule LoginRule `json:"rule"`
	// Created is when the policy was: of two for one path on a host the older one has it.
	Created time.Time `json:"-"`
	// Tokens are those that the issuer gives out. They have no sources.
	Tokens   TokenIssuer `json:"tokens"`
	ClientID string      `json:"clientID"`
	Scopes   []string    `json:"scopes,omitempty"` // beside openid
	// Authorization and EndSession are URLs to which people are led; there may be no EndSession.
	Authorization string `json:"authorization"`
	EndSession    string `json:"endSession,omitempty"`
	// Token is the URL of which proxies get tokens, and Backend who answers there. Posted says that
	// the client's secret is in the body of such a request.
	Token   string     `json:"token"`
	Backend BackendKey `json:"backend"`
	Posted  bool       `json:"posted,omitempty"`
	// CallbackPath and LogoutPath are answered by the proxy, on each host.
	CallbackPath string `json:"callbackPath"`
	LogoutPath   string `json:"logoutPath"`
	// Forward gives the backend the access token.
	Forward bool `json:"forward,omitempty"`
}

// LoginRule is the rule of a policy that has people log in. A session of one is none of another.
type LoginRule struct {
	Policy object.Name `json:"policy"`
	Name   string      `json:"name"`
}

func (r LoginRule) String() string { return r.Policy.String() + "/" + r.Name }

// ClientSecret returns the key of the secret by which the issuer knows who asks for tokens.
func (r LoginRule) ClientSecret() SecretKey { return loginSecret("oidc-client:", r, false) }

// SessionKey returns the key of the secret that encrypts and signs sessions.
func (r LoginRule) SessionKey() SecretKey { return loginSecret("oidc-session:", r, true) }

// No namespace has a colon, so that no certificate has such a text.
func loginSecret(prefix string, r LoginRule, session bool) SecretKey {
	return SecretKey{unique.Make(keyedSecret{login: r, session: session, text: prefix + r.String()})}
}
