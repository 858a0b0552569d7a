package envoy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// What a client has passed by doesn't get to the backend where a policy says so, and all else does, as it was.
func TestEnvoyAccessHides(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	id := newIssuer(t, "id")
	tokens := id.trusted(t)
	tokens.From = append(tokens.From, ir.CredentialSource{Query: "token"}, ir.CredentialSource{Cookie: "token"})
	tokens.Headers = []ir.ClaimHeader{{Claim: []string{"sub"}, Header: "x-client"}}
	keys := apiKeys("keys", map[string]string{"alice": "secret"},
		ir.CredentialSource{Header: "x-api-key"}, ir.CredentialSource{Header: "authorization", Prefix: "ApiKey "}, ir.CredentialSource{Query: "key"}, ir.CredentialSource{Cookie: "key"})
	people := passwordsOf(map[string]string{"carol": "pass"})
	guarded := func(path string, hide, required bool) *ir.Rule {
		tokens, keys, people := tokens, keys, people
		tokens.Hide, keys.Hide, people.Hide = hide, hide, hide
		return &ir.Rule{Match: prefix(path), Backends: to(b), Filters: ir.Filters{Access: &ir.Access{
			Authenticated: required, Hidden: []string{"x-client"},
			Tokens: []ir.TokenIssuer{tokens}, Keys: []ir.APIKeys{keys}, Passwords: []ir.Passwords{people},
		}}}
	}
	r := plain(rulesOn("a.example", guarded("/shown", false, true), guarded("/optional", true, false), guarded("/", true, true)), b).start(t)
	token := id.token(t, map[string]any{"sub": "erin"})
	shown := id.token(t, map[string]any{"sub": "erin", "exp": 1})
	dave := basic("carol", "wrong")
	for what, c := range map[string]struct {
		url       string
		header    http.Header
		client    string
		path      string // that the backend gets; empty for the same
		auth, key string // the headers that it gets
		cookie    string
	}{
		"a key in its header":             {url: "/?a=b", header: http.Header{"X-Api-Key": {"secret"}, "Cookie": {"a=b"}}, client: "alice", cookie: "a=b"},
		"the same key twice":              {url: "/", header: http.Header{"X-Api-Key": {"wrong", "secret"}}, client: "alice"},
		"a key by a scheme":               {url: "/", header: http.Header{"Authorization": {"apikey secret"}, "X-Api-Key": {"wrong"}}, client: "alice", key: "wrong"},
		"a key in the query":              {url: "/x?a=%2f&key=secret&b", client: "alice", path: "/x?a=%2f&b"},
		"alone in the query":              {url: "/x?key=secret", client: "alice", path: "/x"},
		"escaped in the query":            {url: "/x?%6bey=secre%74&akey=c&b=%6bey", client: "alice", path: "/x?akey=c&b=%6bey"},
		"twice in the query":              {url: "/x?key=wrong&a=b&key=secret", client: "alice", path: "/x?a=b"},
		"in the query, beside a password": {url: "/?key=secret", header: http.Header{"Authorization": {basic("carol", "pass")}}, client: "alice", path: "/", auth: basic("carol", "pass")},
		"a key in a cookie":               {url: "/?key=wrong", header: http.Header{"Cookie": {"a=b; key = \"secret\" ; akey=c; keys=d"}}, client: "alice", cookie: "a=b; akey=c; keys=d"},
		"alone in a cookie":               {url: "/", header: http.Header{"Cookie": {"key=secret"}}, client: "alice"},
		"a key among long cookies":        {url: "/", header: http.Header{"Cookie": {"a=" + strings.Repeat("b", 6000) + "; key=secret"}}, client: "alice", cookie: "a=" + strings.Repeat("b", 6000)},
		"a password":                      {url: "/?token=x", header: http.Header{"Authorization": {basic("carol", "pass")}, "X-Api-Key": {"wrong"}}, client: "carol", key: "wrong"},
		"a token":                         {url: "/", header: http.Header{"Authorization": {"Bearer " + token}, "X-Api-Key": {"secret"}}, client: "erin", key: "secret"},
		"a token in the query":            {url: "/x?b=%2F&token=" + token + "&a=+", header: http.Header{"Authorization": {dave}}, client: "erin", path: "/x?b=%2F&a=+", auth: dave},
		"a token in a cookie":             {url: "/", header: http.Header{"Cookie": {"token=" + token + "; a=b"}, "Authorization": {"Bearer " + shown}}, client: "erin", auth: "Bearer " + shown, cookie: "a=b"},
		"the first token alone":           {url: "/?token=" + token, header: http.Header{"Authorization": {"Bearer " + token}}, client: "erin"},
		"nobody's":                        {url: "/optional?key=wrong", header: http.Header{"Authorization": {dave}, "X-Api-Key": {"wrong"}, "Cookie": {"key=wrong"}}, auth: dave, key: "wrong", cookie: "key=wrong"},
		"somebody's, where none is asked": {url: "/optional?token=" + token, client: "erin", path: "/optional"},
		"a key, shown":                    {url: "/shown", header: http.Header{"X-Api-Key": {"secret"}}, client: "alice", key: "secret"},
		"a key in the query, shown":       {url: "/shown?key=secret", client: "alice"},
		"a password, shown":               {url: "/shown", header: http.Header{"Authorization": {basic("carol", "pass")}}, client: "carol", auth: basic("carol", "pass")},
		"a token, shown":                  {url: "/shown?token=" + token, header: http.Header{"Cookie": {"token=" + token}}, client: "erin", cookie: "token=" + token},
	} {
		a := r.do(t, http.MethodGet, "http://a.example"+c.url, c.header, nil)
		if a.Status != 200 {
			t.Errorf("%s: %d", what, a.Status)
			continue
		}
		if c.path == "" {
			c.path = c.url
		}
		h := a.Seen.Header
		for name, is := range map[string][2]string{
			"X-Client": {told(h), c.client}, "the path": {a.Seen.Path, c.path}, "Authorization": {strings.Join(h["Authorization"], ", "), c.auth},
			"X-Api-Key": {strings.Join(h["X-Api-Key"], ", "), c.key}, "Cookie": {strings.Join(h["Cookie"], "; "), c.cookie},
		} {
			if is[0] != is[1] {
				t.Errorf("%s: %s at the backend is %q, want %q", what, name, is[0], is[1])
			}
		}
	}
}
