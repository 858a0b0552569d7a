package envoy

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Three filters have people log in, behind the script that looks for other credentials: Envoy's
// filter of OAuth 2.0, which has the session in cookies; one that verifies the ID token that is left
// in one of them; and a script that lets those pass who have other credentials or such a token.

//go:embed accesslogin.lua
var accessLoginSource string

//go:embed accessleadin.lua
var accessLeadInSource string

//go:embed accesscookies.lua
var accessCookiesSource string

//go:embed accesssessions.lua
var accessSessionsSource string

var loginScript, leadIn = compact(accessLoginSource), compact(accessLeadInSource)

const (
	// passedHeader tells the filter of OAuth 2.0 that a request has other credentials, and
	// programHeader that it has some that are none, before that filter removes them. Filters believe
	// them only as far as somebody is led to log in: who passes says metadata, which no client can
	// set. The scripts remove them.
	passedHeader  = "x-gatehouse-passed"
	programHeader = "x-gatehouse-program"

	// ownHost is the beginning of URLs of the host that a request is for.
	ownHost = "%REQ(x-forwarded-proto)%://%REQ(:authority)%"

	tokenTimeout = 10 * time.Second // of the issuer
	sessionLife  = time.Hour        // where the issuer doesn't say how long its tokens live

	// tokenSkew is for how long an ID token says who somebody is that has expired. How long a session
	// lives is in another cookie, which is signed too, and is renewed without a new ID token by some
	// issuers.
	tokenSkew = 400 * 24 * time.Hour
)

// loginLead begins the scripts of a Login: what they share, and the names that they know.
func loginLead(l *ir.Login) string {
	return cookiesLead + fmt.Sprintf("local cookies, passedHeader, programHeader = %s, %s, %s\n",
		luaText(sessionCookies(l)), luaText(passedHeader), luaText(programHeader))
}

// withDomain is what a cookie of a session says of its domain.
func withDomain(l *ir.Login) string {
	if l.Session.Domain == "" {
		return ""
	}
	return "; Domain=" + l.Session.Domain
}

// cookiesLead begins all scripts that take cookies of sessions away.
var cookiesLead = "local sessions = {" + luaText(sessionPrefix) + ", " + luaText(sharedPrefix) + "}\n" + compact(accessCookiesSource)

// withoutSessions takes the cookies of all sessions away.
var withoutSessions = &luav3.Lua{
	DefaultSourceCode: inlined(cookiesLead + compact(accessSessionsSource)), ClearRouteCache: wrapperspb.Bool(false),
}

// sessionPrefix begins the names of the cookies of all sessions. By __Host- browsers take them from this
// host alone (RFC 6265bis, section 4.1.3).
const sessionPrefix = "__Host-gatehouse-"

// sharedPrefix begins those of sessions that all hosts of a domain share.
const sharedPrefix = "__Secure-gatehouse-"

// sessionCookies begin the names of the cookies of a session. They are no other one's.
func sessionCookies(l *ir.Login) string {
	sum := sha256.Sum256([]byte(l.Session.String()))
	prefix := sessionPrefix
	if l.Session.Domain != "" {
		prefix = sharedPrefix
	}
	return prefix + hex.EncodeToString(sum[:6]) + "-"
}

// tokenCookie is the cookie with the ID token.
func tokenCookie(l *ir.Login) string { return sessionCookies(l) + "id" }

// entrance leads those to the issuer who have no session.
func entrance(a *ir.Access) (message, error) {
	l := a.Login
	if l.Backend.IsZero() || l.Authorization == "" || l.Token == "" {
		return nil, errors.New("nobody can log in: the issuer has no endpoints")
	}
	cookies := sessionCookies(l)
	lax := &oauth2v3.CookieConfig{SameSite: oauth2v3.CookieConfig_LAX}
	config := &oauth2v3.OAuth2Config{
		TokenEndpoint:         tokenEndpoint(l, l.Token),
		AuthorizationEndpoint: l.Authorization,
		EndSessionEndpoint:    l.EndSession,
		Credentials: &oauth2v3.OAuth2Credentials{
			ClientId:       formEncoded(l.ClientID),
			TokenSecret:    generic(l.Session.ClientSecret()),
			TokenFormation: &oauth2v3.OAuth2Credentials_HmacSecret{HmacSecret: generic(l.Session.Key())},
			CookieNames: &oauth2v3.OAuth2Credentials_CookieNames{
				BearerToken: cookies + "access", OauthHmac: cookies + "mac", OauthExpires: cookies + "expires", IdToken: tokenCookie(l),
				RefreshToken: cookies + "refresh", OauthNonce: cookies + "nonce", CodeVerifier: cookies + "verifier",
			},
		},
		RedirectUri:         ownHost + l.CallbackPath,
		RedirectPathMatcher: exactPath(l.CallbackPath),
		SignoutPath:         exactPath(l.LogoutPath),
		AuthScopes:          append([]string{"openid"}, l.Scopes...),
		AuthType:            oauth2v3.OAuth2Config_BASIC_AUTH,
		DefaultExpiresIn:    durationpb.New(sessionLife),
		PassThroughMatcher:  []*routev3.HeaderMatcher{present(passedHeader)},
		DenyRedirectMatcher: impersonal(),
		ForwardBearerToken:  l.Forward,
		CookieConfigs: &oauth2v3.CookieConfigs{
			BearerTokenCookieConfig: lax, OauthHmacCookieConfig: lax, OauthExpiresCookieConfig: lax, IdTokenCookieConfig: lax,
			RefreshTokenCookieConfig: lax, OauthNonceCookieConfig: lax, CodeVerifierCookieConfig: lax,
		},
		DisableAccessTokenSetCookie:          !l.Forward,
		UseAccessTokenExpiryForIdTokenCookie: true,
		TokenCookieChunking:                  &oauth2v3.TokenCookieChunking{},
	}
	if l.Posted {
		config.AuthType = oauth2v3.OAuth2Config_URL_ENCODED_BODY
	}
	if l.RedirectURL != "" {
		config.RedirectUri = literal(l.RedirectURL)
	}
	if d := l.Session.Domain; d != "" {
		config.Credentials.CookieDomain = d
		config.AllowedRedirectDomains = []string{d, "*." + d}
	}
	if l.PostLogout != "" {
		uri := literal(l.PostLogout)
		if strings.HasPrefix(uri, "/") {
			uri = ownHost + uri
		}
		config.PostLogoutRedirectUri = &oauth2v3.PostLogoutRedirectUri{
			Config: &oauth2v3.PostLogoutRedirectUri_Uri{Uri: uri},
		}
	}
	return &oauth2v3.OAuth2{Config: config}, nil
}

// tokenEndpoint is a URL of the issuer that the proxy asks.
func tokenEndpoint(l *ir.Login, url string) *corev3.HttpUri {
	return &corev3.HttpUri{
		Uri: url, HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: ClusterName(l.Backend)}, Timeout: durationpb.New(tokenTimeout),
	}
}

// formEncoded is a client's name or secret as an issuer reads it, from a URL, from a form, and from the
// header Authorization (RFC 6749, section 2.3.1). Envoy writes both as they are into all three; in a
// form it encodes what isn't left here.
func formEncoded(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// impersonal matches the requests of programs, which can't log in: a redirect would be no answer.
func impersonal() []*routev3.HeaderMatcher {
	// What a browser does other than to show a page. It is absent in old ones, and where there is no TLS.
	other := headerMatcher("sec-fetch-mode", exactly("navigate"))
	other.InvertMatch = true
	return []*routev3.HeaderMatcher{
		present(programHeader),
		present("x-requested-with"),
		headerMatcher("content-type", &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: "application/grpc"}}),
		other,
	}
}

func exactPath(text string) *matcherv3.PathMatcher {
	return &matcherv3.PathMatcher{Rule: &matcherv3.PathMatcher_Path{Path: exactly(text)}}
}

func generic(k ir.SecretKey) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: SecretName(k), SdsConfig: ads()}
}

// sessionTokens are the ID tokens of sessions.
func sessionTokens(l *ir.Login) []ir.TokenIssuer {
	tokens := l.Tokens
	tokens.From = []ir.CredentialSource{{Cookie: tokenCookie(l)}}
	return []ir.TokenIssuer{tokens}
}

// session verifies the ID token of a session. It looks at no request that has other credentials, nor
// did the filter before: the cookies of those are what clients say.
func session(a *ir.Access) (message, error) {
	m := verified(sessionTokens(a.Login))
	for _, p := range m.Providers {
		p.ClockSkewSeconds = uint32(tokenSkew.Seconds())
	}
	without := present(passedHeader)
	without.InvertMatch = true
	for _, rule := range m.Rules {
		rule.Match.Headers = []*routev3.HeaderMatcher{without}
	}
	return m, nil
}

// entered lets those pass who have a session or other credentials.
func entered(a *ir.Access) (message, error) {
	var b strings.Builder
	b.WriteString(loginLead(a.Login))
	fmt.Fprintf(&b, "local domain = %s\n", luaText(withDomain(a.Login)))
	refusal(&b, a)
	claims(&b, sessionTokens(a.Login))
	b.WriteString(loginScript)
	return &luav3.Lua{DefaultSourceCode: inlined(b.String()), ClearRouteCache: wrapperspb.Bool(false)}, nil
}
