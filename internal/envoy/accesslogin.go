package envoy

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
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

var loginScript = compact(accessLoginSource)

const (
	// passedHeader tells the filter of OAuth 2.0 that a request has other credentials, and
	// programHeader that it has some that are none, before that filter removes them. Filters believe
	// them only as far as somebody is led to log in: who passes says metadata, which no client can
	// set. The scripts remove them.
	passedHeader  = "x-gatehouse-passed"
	programHeader = "x-gatehouse-program"

	tokenTimeout = 10 * time.Second // of the issuer
	sessionLife  = time.Hour        // where the issuer doesn't say how long its tokens live

	// tokenSkew is for how long an ID token says who somebody is that has expired. How long a session
	// lives is in another cookie, which is signed too, and is renewed without a new ID token by some
	// issuers.
	tokenSkew = 400 * 24 * time.Hour
)

// leadIn has the filter of OAuth 2.0 know what it has to do with a request. An ID token in clear is none
// that the filter has given out, since those are encrypted and then have no dot, but it would be taken
// for one where a session is renewed and the issuer gives no new ID token: that filter checks none of
// the cookies then but the refresh token, which may be another person's. That there is such a token is
// noted before the filter takes it.
const leadIn = `local function leadIn(headers, metadata, passed)
headers:remove("` + passedHeader + `")
headers:remove("` + programHeader + `")
if headers:get("authorization") then headers:add("` + programHeader + `", "1") end
if passed then headers:add("` + passedHeader + `", "1") end
local left, forged = {}, false
for i = 0, headers:getNumValues("cookie") - 1 do
for pair in string.gmatch(headers:getAtIndex("cookie", i) or "", "[^;]+") do
if string.find(pair, cookies .. "id", 1, true) and string.find(pair, ".", 1, true) then forged = true
else left[#left + 1] = string.match(pair, "^%s*(.*)$") end
if string.find(pair, cookies .. "refresh", 1, true) then metadata:set("gatehouse.access", "renews", true) end
end
end
if forged then
headers:remove("cookie")
if #left > 0 then headers:add("cookie", table.concat(left, "; ")) end
end
return passed
end
`

// sessionCookies begin the names of the cookies of a session. They are no other's: by the prefix
// __Host- browsers take them from this host alone (RFC 6265bis, section 4.1.3).
func sessionCookies(l *ir.Login) string {
	sum := sha256.Sum256([]byte(l.Rule.String()))
	return "__Host-gatehouse-" + hex.EncodeToString(sum[:6]) + "-"
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
		TokenEndpoint: &corev3.HttpUri{
			Uri: l.Token, HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: ClusterName(l.Backend)}, Timeout: durationpb.New(tokenTimeout),
		},
		AuthorizationEndpoint: l.Authorization,
		EndSessionEndpoint:    l.EndSession,
		Credentials: &oauth2v3.OAuth2Credentials{
			ClientId:       l.ClientID,
			TokenSecret:    generic(l.Rule.ClientSecret()),
			TokenFormation: &oauth2v3.OAuth2Credentials_HmacSecret{HmacSecret: generic(l.Rule.SessionKey())},
			CookieNames: &oauth2v3.OAuth2Credentials_CookieNames{
				BearerToken: cookies + "access", OauthHmac: cookies + "mac", OauthExpires: cookies + "expires", IdToken: tokenCookie(l),
				RefreshToken: cookies + "refresh", OauthNonce: cookies + "nonce", CodeVerifier: cookies + "verifier",
			},
		},
		RedirectUri:         "%REQ(x-forwarded-proto)%://%REQ(:authority)%" + l.CallbackPath,
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
	return &oauth2v3.OAuth2{Config: config}, nil
}

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

// session verifies the ID token of a session. It looks at no request that has other credentials, nor
// did the filter before: the cookies of those are what clients say.
func session(a *ir.Access) (message, error) {
	l := a.Login
	tokens := l.Tokens
	tokens.From = []ir.CredentialSource{{Cookie: tokenCookie(l)}}
	m := verified([]ir.TokenIssuer{tokens})
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
	fmt.Fprintf(&b, "local cookies = %s\n", luaText(sessionCookies(a.Login)))
	luaAnswer(&b, "unauthenticated", a.Unauthenticated)
	b.WriteString(loginScript)
	return &luav3.Lua{DefaultSourceCode: inlined(b.String()), ClearRouteCache: wrapperspb.Bool(false)}, nil
}
