package ir

import (
	"time"
	"unique"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// Login has people log in at an issuer of tokens (OpenID Connect Core 1.0, section 3.1). What it
// says of them is the ID token, which is among no credentials that a client brings itself.
type Login struct {
	Session LoginSession `json:"session"`
	// Policy is the AuthPolicy that says so, and Created when that was: of two with different sessions
	// for one path on a host the older one has it.
	Policy  object.Name `json:"policy"`
	Created time.Time   `json:"-"`
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
	// RedirectURL is where the issuer sends people back, from whichever host; empty for CallbackPath on theirs.
	RedirectURL string `json:"redirectURL,omitempty"`
	// PostLogout is where the issuer sends people who have logged out, a URL or a path; empty for /.
	PostLogout string `json:"postLogout,omitempty"`
	// Forward gives the backend the access token.
	Forward bool `json:"forward,omitempty"`
}

// LoginSession is what people have who are logged in. All rules by which they log in as the same client
// share it, whatever scopes and paths these name.
type LoginSession struct {
	// Secret and Entry are where the client's secret stands.
	Secret object.Name `json:"secret"`
	Entry  string      `json:"entry"`
	// Client tells clients and their issuers apart.
	Client string `json:"client"`
	// Domain is that of which all hosts share the session; empty for one on each host.
	Domain string `json:"domain,omitempty"`
}

func (s LoginSession) String() string {
	text := s.Secret.String() + "/" + s.Entry + "/" + s.Client
	if s.Domain != "" {
		text += "/" + s.Domain
	}
	return text
}

// ClientSecret returns the key of the secret by which the issuer knows who asks for tokens.
func (s LoginSession) ClientSecret() SecretKey { return loginSecret("oidc-client:", s, false) }

// Key returns the key of the secret that encrypts and signs sessions.
func (s LoginSession) Key() SecretKey { return loginSecret("oidc-session:", s, true) }

// No namespace has a colon, so that no certificate has such a text.
func loginSecret(prefix string, s LoginSession, encrypts bool) SecretKey {
	return SecretKey{unique.Make(keyedSecret{login: s, encrypts: encrypts, text: prefix + s.String()})}
}
