//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// TestLogInAsAnyClient protects that a client may be called anything, and its secret be made of whatever is
// printable: providers read both as forms are encoded.
func TestLogInAsAnyClient(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	const client, secret = `shop+web%41/a&b=c#?: ~ü"$,;@`, `+/a=%41 &:?#~"'\$,;@!`
	const page = "http://home.example/page"
	for name, more := range map[string][]string{"in a header": nil, "in a body": {"-post"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := startProviderWith(t, append(more, "-client", client, "-secret", secret, "-life", "2s", "-redirects", "http://home.example/oauth2/callback")...)
			s := startSite(t, map[string]string{"keys.yaml": loginSecretOf("'" + strings.ReplaceAll(secret, "'", "''") + "'")})
			s.write(t, "policy.yaml", authPolicy("staff", onHome, strings.Replace(loginPolicy(issuer, "      forwardAccessToken: true\n"), "clientID: "+loginClient, "clientID: '"+client+"'", 1)))
			s.says(t, "AuthPolicy staff", "All rules of the policy are in force")
			s.answers(t, page, http.StatusFound)
			person := newBrowser(t, s.listener())
			res, body := person.opens(page)
			if res.StatusCode != http.StatusOK || !strings.Contains(body, `"id1"`) {
				t.Fatalf("whoever logs in is answered %d %q; %q", res.StatusCode, clipped([]byte(body)), person.trace)
			}
			first := accessToken(t, body)
			eventually(t, siteTimeout, func() error { // with a refresh token
				res, body := person.send(http.MethodGet, page, nil, nil)
				if res.StatusCode != http.StatusOK {
					t.Fatalf("the session is answered %d %q", res.StatusCode, clipped([]byte(body)))
				}
				if accessToken(t, body) == first {
					return errors.New("the session isn't renewed")
				}
				return nil
			})
		})
	}
}

// accessToken is what a backend has got in Authorization.
func accessToken(t *testing.T, body string) string {
	t.Helper()
	var got echo.Answer
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%v: %q", err, clipped([]byte(body)))
	}
	return got.Headers.Get("Authorization")
}
