//go:build linux

package e2e

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// frugalProvider is an OpenID Provider that gives no new ID token for a refresh token, which it need not
// (OpenID Connect Core 1.0, section 12.2). It logs everybody in as one person, without a question.
type frugalProvider struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func startFrugalProvider(t *testing.T, user string) *frugalProvider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &frugalProvider{key: key}
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]string{
			"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, json.RawMessage(p.keySet()))
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"any"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		tokens := map[string]any{"access_token": "any", "token_type": "Bearer", "expires_in": 300, "refresh_token": "any"}
		if r.FormValue("grant_type") != "refresh_token" {
			tokens["id_token"] = p.idToken(t, user)
		}
		answer(w, tokens)
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// keySet is the key that signs its tokens, as JSON.
func (p *frugalProvider) keySet() string {
	return fmt.Sprintf(`{"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k", "n": "%s", "e": "%s"}]}`,
		unpadded(p.key.N.Bytes()), unpadded(big.NewInt(int64(p.key.E)).Bytes()))
}

func unpadded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// idToken says who somebody is.
func (p *frugalProvider) idToken(t *testing.T, user string) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{"iss": p.URL, "aud": loginClient, "sub": user, "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		t.Error(err)
	}
	text := unpadded([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + unpadded(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Error(err)
	}
	return text + "." + unpadded(signature)
}

// TestRenewedSessionIsOnesOwn protects that nobody who renews a session of his own becomes another person
// by her ID token: Envoy checks none of the cookies then but the refresh token.
func TestRenewedSessionIsOnesOwn(t *testing.T) {
	t.Parallel()
	p := startFrugalProvider(t, "mallory")
	s := startSite(t, map[string]string{"keys.yaml": loginSecretOf(loginSecret)})
	const page = "http://home.example/page"
	s.write(t, "policy.yaml", authPolicy("staff", onHome, loginPolicy(p.URL, "")))
	s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
	s.answers(t, page, http.StatusFound)
	mallory := newBrowser(t, s.listener())
	if res, body := mallory.opens(page); res.StatusCode != http.StatusOK || !strings.Contains(body, `"mallory"`) {
		t.Fatalf("whoever logs in is answered %d %q", res.StatusCode, body)
	}
	session := mallory.cookies["home.example"]
	var name, refresh string
	for cookie, value := range session {
		switch {
		case strings.HasSuffix(cookie, "-id"):
			name = cookie
		case strings.HasSuffix(cookie, "-refresh"):
			refresh = cookie + "=" + value
		}
	}
	own, token := name+"="+session[name], p.idToken(t, "alice")
	half := len(token) / 2
	for what, lines := range map[string][]string{
		"alone": {refresh + "; " + name + "=" + token}, "before": {name + "=" + token + "; " + refresh}, "in a line of its own": {refresh, name + "=" + token},
		"with quotes": {refresh + "; " + name + `="` + token + `"`}, "with a space": {refresh + "; " + name + " =" + token}, "with a tab": {refresh + ";\t" + name + "=\t" + token},
		"before one's own": {refresh + "; " + name + "=" + token + "; " + own}, "behind one's own": {refresh + "; " + own + "; " + name + "=" + token},
		"in parts": {refresh + "; " + name + ".0=" + token[:half] + "; " + name + ".1=" + token[half:]}, "in parts with _": {refresh + "; " + name + "_0=" + token[:half] + "; " + name + "_1=" + token[half:]},
		"in parts that are counted": {refresh + "; " + name + "_chunks=2; " + name + "_0=" + token[:half] + "; " + name + "_1=" + token[half:]},
		"in parts with -":           {refresh + "; " + name + "-0=" + token[:half] + "; " + name + "-1=" + token[half:]},
	} {
		b := newBrowser(t, s.listener())
		b.lines = lines
		if res, body := b.send(http.MethodGet, page, nil, nil); strings.Contains(body, `"alice"`) || !strings.Contains(what, "own") && res.StatusCode == http.StatusOK {
			t.Errorf("somebody else's ID token %s is answered %d %q", what, res.StatusCode, body)
		}
	}
	// Without one there is nobody to let pass: a person logs in anew, a program is told so.
	b := newBrowser(t, s.listener())
	b.lines = []string{refresh}
	if res, _ := b.send(http.MethodGet, page, nil, map[string]string{"Sec-Fetch-Mode": "cors"}); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a script whose session has no ID token is answered %d", res.StatusCode)
	}
	if res, _ := b.send(http.MethodGet, page+"?a=b", nil, nil); res.StatusCode != http.StatusFound || res.Header.Get("Location") != page+"?a=b" {
		t.Errorf("a person whose session has no ID token is answered %d, to %q", res.StatusCode, res.Header.Get("Location"))
	}
	again := newBrowser(t, s.listener())
	again.cookies["home.example"] = map[string]string{strings.Split(refresh, "=")[0]: session[strings.Split(refresh, "=")[0]]}
	if res, body := again.opens(page); res.StatusCode != http.StatusOK || !strings.Contains(body, `"mallory"`) {
		t.Errorf("then the answer is %d %q; %q", res.StatusCode, body, again.trace)
	}
	// One's own, which Envoy has encrypted, goes on.
	b.lines = []string{refresh + "; " + own}
	if res, body := b.send(http.MethodGet, page, nil, nil); res.StatusCode != http.StatusOK || !strings.Contains(body, `"mallory"`) {
		t.Errorf("a session that is renewed is answered %d %q", res.StatusCode, body)
	}
}
