package standalone

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// issuer is one of tokens, whose keys are found by its configuration.
type issuer struct {
	*httptest.Server
	t     *testing.T
	key   atomic.Pointer[ecdsa.PrivateKey]
	delay atomic.Int64 // of its answers
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t}
	i.rotate()
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Duration(i.delay.Load())):
		case <-r.Context().Done():
			return
		}
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q}`, i.URL, i.URL+"/keys")
		case "/keys":
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Load().Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
		}
	}))
	t.Cleanup(i.Close)
	return i
}

// rotate has it sign by another key.
func (i *issuer) rotate() {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.key.Store(key)
}

func (i *issuer) token() string {
	i.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key.Load(), KeyID: "k"}}, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(jwt.Claims{Issuer: i.URL, Expiry: jwt.NewNumericDate(time.Now().Add(time.Hour))}).Serialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

// status is what a request with a token, if any, is answered with; 0 for not at all.
func (s *served) status(token string) int {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.address, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// firstStatus is the first answer to a request with a token.
func (s *served) firstStatus(token string) (status int) {
	s.t.Helper()
	s.until("answers", func() bool { status = s.status(token); return status != 0 })
	return status
}

// A valid token never is refused because the process has started anew: it has the keys of the
// one before, and what it doesn't have it waits for before proxies are told anything.
func TestRestartKeepsTokensValid(t *testing.T) {
	id := newIssuer(t)
	token := id.token()
	s := serve(t, time.Second)
	policy := fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: site}
spec: {parentRefs: [{name: edge}], rules: [{filters: [{type: RequestRedirect, requestRedirect: {hostname: passed.test}}]}]}
---
apiVersion: gatehouse.dev/v1alpha1
kind: AuthPolicy
metadata: {name: guard}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]
  authentication: {staff: {jwt: {issuer: %q}}}
`, id.URL)
	if err := os.WriteFile(filepath.Join(s.files, "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	s.until("the token passes, and nothing else", func() bool {
		return s.status(token) == http.StatusFound && s.status("") == http.StatusUnauthorized
	})
	kept := filepath.Join(s.state, "key-sets.json")
	s.until("the keys are kept", func() bool {
		text, err := os.ReadFile(kept)
		return err == nil && len(text) > len("[]")
	})

	id.delay.Store(int64(time.Hour)) // it is down
	s = s.restart()
	if got := s.firstStatus(token); got != http.StatusFound {
		t.Errorf("after a restart without the issuer: %d", got)
	}
	if got := s.status(""); got != http.StatusUnauthorized {
		t.Errorf("without a token: %d", got)
	}

	id.delay.Store(int64(50 * time.Millisecond)) // it is slow
	s.end()
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	s = s.restart()
	if got := s.firstStatus(token); got != http.StatusFound {
		t.Errorf("after a restart with a slow issuer: %d", got)
	}

	// Whatever was kept, the issuer is asked, and a key that it has taken out is good no more.
	id.rotate()
	id.delay.Store(0)
	s = s.restart()
	s.until("tokens by the new key pass, and no others", func() bool {
		return s.status(id.token()) == http.StatusFound && s.status(token) == http.StatusUnauthorized
	})
}
