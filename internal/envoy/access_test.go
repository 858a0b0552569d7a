package envoy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // htpasswd has no other hash that is read
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// issuer signs tokens.
type issuer struct {
	name string
	key  *ecdsa.PrivateKey
}

func newIssuer(t testing.TB, name string) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{name, key}
}

func (i *issuer) trusted(t testing.TB) ir.TokenIssuer {
	t.Helper()
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: i.name}}})
	if err != nil {
		t.Fatal(err)
	}
	return ir.TokenIssuer{
		Name: i.name, Issuer: "https://" + i.name, JWKS: string(set),
		From: []ir.CredentialSource{{Header: "authorization", Prefix: "Bearer "}},
	}
}

// token signs claims; those that every token needs are added.
func (i *issuer) token(t testing.TB, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: i.name}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{"iss": "https://" + i.name, "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	token, err := jwt.Signed(signer).Claims(all).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func hashed(salt, key string) ir.Sensitive {
	sum := sha256.Sum256([]byte(salt + key))
	return ir.Sensitive(hex.EncodeToString(sum[:]))
}

// apiKeys are keys by client.
func apiKeys(name string, keys map[string]string, from ...ir.CredentialSource) ir.APIKeys {
	out := ir.APIKeys{Name: name, Salt: "salt", Header: "x-client", From: from}
	if len(from) == 0 {
		out.From = []ir.CredentialSource{{Header: "x-api-key"}}
	}
	for _, client := range slices.Sorted(maps.Keys(keys)) {
		out.Keys = append(out.Keys, ir.HashedKey{Sum: hashed(out.Salt, keys[client]), Client: client})
	}
	return out
}

func passwordsOf(users map[string]string) ir.Passwords {
	out := ir.Passwords{Name: "people", Realm: "the people's", Salt: "pepper", Header: "x-client"}
	for _, user := range slices.Sorted(maps.Keys(users)) {
		sum := sha1.Sum([]byte(users[user])) //nolint:gosec // see above
		out.Users = append(out.Users, ir.HashedPassword{User: user, Sum: hashed(out.Salt, base64.StdEncoding.EncodeToString(sum[:]))})
	}
	return out
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// told is who a backend is told that the client is, by all names that may be X-Client to it.
func told(h http.Header) string {
	var all []string
	for name, values := range h {
		if len(name) == len("x-client") && strings.EqualFold(name[:1], "x") && strings.EqualFold(name[2:], "client") {
			all = append(all, values...)
		}
	}
	return strings.Join(all, " ")
}

// asked is a request and its answer.
type asked struct {
	what   string
	url    string
	header http.Header
	want   int
	client string // who the backend is told it was; only with 200
}

// Who has one of the credentials passes, and nobody else does.
func TestEnvoyAccess(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	id, other := newIssuer(t, "id"), newIssuer(t, "other")
	trusted := id.trusted(t)
	trusted.Audiences = []string{"shop"}
	trusted.From = append(trusted.From, ir.CredentialSource{Query: "token"}, ir.CredentialSource{Cookie: "token"})
	trusted.Headers = []ir.ClaimHeader{{Claim: []string{"sub"}, Header: "x-client"}}
	hidden := []string{"x-client"}
	all := &ir.Access{
		Authenticated: true, Hidden: hidden, Tokens: []ir.TokenIssuer{trusted},
		Keys: []ir.APIKeys{apiKeys("keys", map[string]string{"alice": "secret", "bob": "other secret"},
			ir.CredentialSource{Header: "x-api-key"}, ir.CredentialSource{Header: "authorization", Prefix: "ApiKey "},
			ir.CredentialSource{Query: "key"}, ir.CredentialSource{Cookie: "key"})},
		Passwords: []ir.Passwords{passwordsOf(map[string]string{"carol": "pass:word", "dave": ""})},
	}
	with := func(change func(*ir.Access)) *ir.Access {
		a := *all
		change(&a)
		return &a
	}
	condition := func(c ir.AccessCondition) *ir.Access {
		return with(func(a *ir.Access) { a.Conditions = []ir.AccessCondition{c} })
	}
	guarded := func(path string, a *ir.Access) *ir.Rule {
		return &ir.Rule{Match: prefix(path), Filters: ir.Filters{Access: a}, Backends: to(b)}
	}
	everywhere := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::/0")}
	nowhere := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}
	redirect := guarded("/redirect", all)
	redirect.Backends, redirect.Redirect = nil, &ir.Redirect{Hostname: "x.test", Status: 302}
	direct := guarded("/direct", all)
	direct.Backends, direct.Status = nil, http.StatusTeapot
	preflight := guarded("/cors", all)
	preflight.Filters.CORS = &ir.CORS{AllowOrigins: []string{"*"}}
	r := plain(rulesOn("a.example",
		guarded("/anonymous", with(func(a *ir.Access) { a.Authenticated = false })),
		guarded("/nobody", &ir.Access{Authenticated: true}),
		guarded("/never", condition(ir.AccessCondition{Never: true})),
		guarded("/near", condition(ir.AccessCondition{Allow: everywhere})),
		guarded("/far", condition(ir.AccessCondition{Allow: nowhere})),
		guarded("/denied", condition(ir.AccessCondition{Deny: everywhere})),
		guarded("/not-denied", condition(ir.AccessCondition{Deny: nowhere})),
		guarded("/both", condition(ir.AccessCondition{Allow: everywhere, Deny: everywhere[:1]})),
		guarded("/address", &ir.Access{Conditions: []ir.AccessCondition{{Allow: nowhere}}}),
		guarded("/alice", condition(ir.AccessCondition{Clients: []string{"alice", "carol"}})),
		guarded("/admins", condition(ir.AccessCondition{Claims: []ir.ClaimMatch{{Claim: []string{"role"}, Values: []string{"admin", "owner"}}}})),
		guarded("/nested", condition(ir.AccessCondition{Claims: []ir.ClaimMatch{{Claim: []string{"realm", "roles"}, Values: []string{"admin"}}}})),
		guarded("/url", condition(ir.AccessCondition{Claims: []ir.ClaimMatch{{Claim: []string{"https://x.test/role"}, Values: []string{"7", "true", "1234567890123456800"}}}})),
		guarded("/scope", condition(ir.AccessCondition{Claims: []ir.ClaimMatch{{Claim: []string{"scope"}, Values: []string{"a:read"}}}})),
		redirect, direct, preflight,
		guarded("/", all),
	), b).start(t)
	// The header by which a route is chosen may not be another after it has been.
	claims := map[string]any{"aud": "shop", "sub": "erin"}
	good := "Bearer " + id.token(t, claims)
	is := func(more map[string]any) http.Header {
		all := maps.Clone(claims)
		maps.Copy(all, more)
		return http.Header{"Authorization": {"Bearer " + id.token(t, all)}}
	}
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://id","aud":"shop","exp":9999999999}`)) + "."
	key := http.Header{"X-Api-Key": {"secret"}}
	for _, c := range []asked{
		{"nothing", "/", nil, 401, ""},
		{"a token", "/", http.Header{"Authorization": {good}}, 200, "erin"},
		{"a token in the query", "/?token=" + good[len("Bearer "):], nil, 200, "erin"},
		{"a token in a cookie", "/", http.Header{"Cookie": {"a=b; token=" + good[len("Bearer "):]}}, 200, "erin"},
		{"another audience", "/", is(map[string]any{"aud": "other"}), 401, ""},
		{"another issuer's name", "/", is(map[string]any{"iss": "https://other"}), 401, ""},
		{"an old token", "/", is(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), 401, ""},
		{"a token from tomorrow", "/", is(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}), 401, ""},
		{"another's signature", "/", http.Header{"Authorization": {"Bearer " + other.token(t, map[string]any{"iss": "https://id", "aud": "shop"})}}, 401, ""},
		{"no signature", "/", http.Header{"Authorization": {"Bearer " + none}}, 401, ""},
		{"a token by a small scheme", "/", http.Header{"Authorization": {"bearer " + good[len("Bearer "):]}}, 200, "erin"},
		{"half a token", "/", http.Header{"Authorization": {good[:len(good)/2]}}, 401, ""},
		{"a key", "/", key, 200, "alice"},
		{"another key", "/", http.Header{"X-Api-Key": {"other secret"}}, 200, "bob"},
		{"a wrong key", "/", http.Header{"X-Api-Key": {"secret "}}, 200, "alice"}, // blanks around a value are none of it
		{"a wrong key", "/", http.Header{"X-Api-Key": {"Secret"}}, 401, ""},
		{"an empty key", "/", http.Header{"X-Api-Key": {""}}, 401, ""},
		{"a hash", "/", http.Header{"X-Api-Key": {hashed("salt", "secret").Reveal()}}, 401, ""},
		{"a long key", "/", http.Header{"X-Api-Key": {strings.Repeat("s", 5000)}}, 401, ""},
		{"two keys", "/", http.Header{"X-Api-Key": {"wrong", "secret"}}, 200, "alice"},
		{"a key by a scheme", "/", http.Header{"Authorization": {"apikey secret"}}, 200, "alice"},
		{"a key by another scheme", "/", http.Header{"Authorization": {"Bearer secret"}}, 401, ""},
		{"a key in the query", "/?a=b&key=other%20secret", nil, 200, "bob"},
		{"a key in another parameter", "/?akey=secret", nil, 401, ""},
		{"a key in the path", "/key=secret", nil, 401, ""},
		{"a key in a cookie", "/", http.Header{"Cookie": {"a=b", `key="secret"`}}, 200, "alice"},
		{"a key among long cookies", "/", http.Header{"Cookie": {"a=" + strings.Repeat("b", 6000) + "; key = secret "}}, 200, "alice"},
		{"a key behind many", "/?" + strings.Repeat("key=wrong&", 20) + "key=secret", nil, 401, ""},
		{"Authorization twice", "/", http.Header{"Authorization": {basic("carol", "no"), basic("carol", "pass:word")}}, 401, ""},
		{"a password", "/", http.Header{"Authorization": {basic("carol", "pass:word")}}, 200, "carol"},
		{"an empty password", "/", http.Header{"Authorization": {basic("dave", "")}}, 200, "dave"},
		{"a wrong password", "/", http.Header{"Authorization": {basic("carol", "pass")}}, 401, ""},
		{"an unknown user", "/", http.Header{"Authorization": {basic("nobody", "")}}, 401, ""},
		{"no colon", "/", http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("carol"))}}, 401, ""},
		{"no base 64", "/", http.Header{"Authorization": {"Basic !!!"}}, 401, ""},
		{"somebody else's name", "/", http.Header{"X-Client": {"admin"}, "X_client": {"admin"}, "X.Client": {"admin"}, "X~client": {"admin"}, "X-Api-Key": {"secret"}}, 200, "alice"},
		{"nobody, under a name", "/anonymous", http.Header{"X-Client": {"admin"}}, 200, ""},
		{"a wrong key, and nobody", "/anonymous", http.Header{"X-Api-Key": {"wrong"}}, 200, ""},
		{"a key where none is needed", "/anonymous", key, 200, "alice"},
		{"where nobody passes", "/nobody", key, 401, ""},
		{"a condition that nobody meets", "/never", key, 403, ""},
		{"a condition, and no credentials", "/never", nil, 401, ""},
		{"near", "/near", key, 200, "alice"},
		{"far", "/far", key, 403, ""},
		{"far, by hearsay", "/far", http.Header{"X-Api-Key": {"secret"}, "X-Forwarded-For": {"192.0.2.1"}}, 403, ""},
		{"denied", "/denied", key, 403, ""},
		{"not denied", "/not-denied", key, 200, "alice"},
		{"allowed and denied", "/both", key, 403, ""},
		{"an address alone", "/address", nil, 403, ""},
		{"one of some clients", "/alice", key, 200, "alice"},
		{"one of some users", "/alice", http.Header{"Authorization": {basic("carol", "pass:word")}}, 200, "carol"},
		{"another client", "/alice", http.Header{"X-Api-Key": {"other secret"}}, 403, ""},
		{"a token's subject of that name", "/alice", is(map[string]any{"sub": "alice"}), 403, ""},
		{"a claim", "/admins", is(map[string]any{"role": "owner"}), 200, "erin"},
		{"a claim in a list", "/admins", is(map[string]any{"role": []string{"x", "admin"}}), 200, "erin"},
		{"another claim", "/admins", is(map[string]any{"role": "administrator"}), 403, ""},
		{"no claim", "/admins", is(nil), 403, ""},
		{"a key has no claims", "/admins", key, 403, ""},
		{"a claim inside of one", "/nested", is(map[string]any{"realm": map[string]any{"roles": []string{"admin"}}}), 200, "erin"},
		{"not inside of one", "/nested", is(map[string]any{"realm.roles": "admin"}), 403, ""},
		{"a number", "/url", is(map[string]any{"https://x.test/role": 7}), 200, "erin"},
		{"a number that is the same to doubles", "/url", is(map[string]any{"https://x.test/role": 1234567890123456789}), 403, ""},
		{"a long number as text", "/url", is(map[string]any{"https://x.test/role": "1234567890123456800"}), 200, "erin"},
		{"a truth", "/url", is(map[string]any{"https://x.test/role": true}), 200, "erin"},
		{"a scope alone", "/scope", is(map[string]any{"scope": "a:read"}), 200, "erin"},
		{"the first scope", "/scope", is(map[string]any{"scope": "a:read b"}), 200, "erin"},
		{"the last scope", "/scope", is(map[string]any{"scope": "b a:read"}), 200, "erin"},
		{"a scope between", "/scope", is(map[string]any{"scope": "b a:read c"}), 200, "erin"},
		{"a scope in a list", "/scope", is(map[string]any{"scope": []string{"b", "a:read"}}), 200, "erin"},
		{"longer scopes", "/scope", is(map[string]any{"scope": "aa:read a:reads b-a:read xa:read"}), 403, ""},
		{"words of another claim", "/admins", is(map[string]any{"role": "x admin"}), 403, ""},
		{"a redirect", "/redirect", nil, 401, ""},
		{"a redirect with a key", "/redirect", key, 302, ""},
		{"an answer without a backend", "/direct", nil, 401, ""},
		{"an answer without a backend, with a key", "/direct", key, 418, ""},
	} {
		a := r.do(t, http.MethodGet, "http://a.example"+c.url, c.header, nil)
		if a.Status != c.want {
			t.Errorf("%s: %s: %d, want %d", c.what, c.url, a.Status, c.want)
			continue
		}
		switch {
		case c.want == 200 && told(a.Seen.Header) != c.client:
			t.Errorf("%s: %s: the backend is told of %q, want %q", c.what, c.url, told(a.Seen.Header), c.client)
		case c.want == 401 && a.Header.Get("WWW-Authenticate") == "" && c.url != "/nobody":
			t.Errorf("%s: %s: no challenge", c.what, c.url)
		}
	}
	// What a request costs that has no credential doesn't grow with its square.
	// On a busy machine one request may be slow, but not all of them.
	quickest := func(what string, most time.Duration, do func() answered) {
		t.Helper()
		least := time.Hour
		for tries := 0; tries < 10 && least > most; tries++ {
			began := time.Now()
			if a := do(); a.Status != 401 {
				t.Fatalf("%s: %d", what, a.Status)
			}
			least = min(least, time.Since(began))
		}
		if least > most {
			t.Errorf("%s: %s at least", what, least)
		}
	}
	quickest("padding that is none, a hundred times", 2*time.Second, func() (a answered) {
		for range 100 {
			a = r.do(t, http.MethodGet, "http://a.example/", http.Header{"Authorization": {"Basic " + strings.Repeat("=", 4000) + "x"}}, nil)
		}
		return a
	})
	for what, query := range map[string]string{
		"no equals sign": strings.Repeat("a", 50_000), "nothing but equals signs": strings.Repeat("=", 50_000), "keys": strings.Repeat("key=a&", 8_000),
		"blanks": "key=" + strings.Repeat("%20", 16_000),
	} {
		quickest(what, time.Second, func() answered { return r.get(t, "http://a.example/?"+query) })
	}
	if a := r.do(t, http.MethodOptions, "http://a.example/cors", http.Header{"Origin": {"https://x.test"}, "Access-Control-Request-Method": {"GET"}}, nil); a.Status != 200 {
		t.Errorf("a preflight: %d", a.Status)
	}
	if got := r.get(t, "http://a.example/").Header.Values("WWW-Authenticate"); len(got) != 2 || got[0] != "Bearer" || !strings.HasPrefix(got[1], `Basic realm="the people's"`) {
		t.Errorf("challenges: %q", got)
	}
	for what, token := range map[string]string{
		"in no form": "a.b.c", "without a signature": base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
			base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://id","aud":"shop","exp":9999999999}`)) + ".",
		"of another issuer": base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256"}`)) + "." +
			base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://foreign","exp":9999999999}`)) + ".c2ln",
	} {
		got := r.do(t, http.MethodGet, "http://a.example/", http.Header{"Authorization": {"Bearer " + token}}, nil).Header.Values("WWW-Authenticate")
		if len(got) != 2 || got[0] != `Bearer error="invalid_token"` {
			t.Errorf("challenges to a token %s: %q", what, got)
		}
	}
	grpc := r.do(t, http.MethodPost, "http://a.example/", http.Header{"Content-Type": {"application/grpc"}}, nil)
	if grpc.Status != 200 || grpc.Header.Get("Grpc-Status") != "16" {
		t.Errorf("gRPC without credentials: %d, status %q", grpc.Status, grpc.Header.Get("Grpc-Status"))
	}
	if dump := r.admintext(t, "/config_dump"); strings.Contains(dump, "other secret") || strings.Contains(dump, "pass:word") {
		t.Error("a key or a password is in Envoy's configuration")
	}
}

func (r *running) admintext(t testing.TB, path string) string {
	t.Helper()
	resp, err := r.admin.Get("http://admin" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The innermost level says who may pass, and nothing of the others is left over.
func TestEnvoyLevelsOfAccess(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	id := newIssuer(t, "id")
	levels := []string{"listener", "host", "rule"}
	// What a level may say, and who passes by it: a credential of the level's own, or anybody.
	kinds := map[string]func(level string) (*ir.Access, http.Header){
		"nothing": func(string) (*ir.Access, http.Header) { return nil, nil },
		"open":    func(string) (*ir.Access, http.Header) { return &ir.Access{}, http.Header{} },
		"keys": func(level string) (*ir.Access, http.Header) {
			return &ir.Access{Authenticated: true, Hidden: []string{"x-client"}, Keys: []ir.APIKeys{apiKeys("k", map[string]string{level: level})}}, http.Header{"X-Api-Key": {level}}
		},
		"tokens": func(level string) (*ir.Access, http.Header) {
			token := id.trusted(t)
			token.Audiences = []string{level}
			return &ir.Access{Authenticated: true, Tokens: []ir.TokenIssuer{token}}, http.Header{"Authorization": {"Bearer " + id.token(t, map[string]any{"aud": level})}}
		},
		"address": func(string) (*ir.Access, http.Header) {
			return &ir.Access{Conditions: []ir.AccessCondition{{Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}}}, http.Header{}
		},
		"when": func(level string) (*ir.Access, http.Header) { // of the same name on all levels, and of one of its own
			of := func(name string) ir.AccessCondition {
				return ir.AccessCondition{Name: name, Headers: []ir.HeaderValues{{Name: "x-level", Values: []string{level}}}, When: "request.method == 'GET'"}
			}
			return &ir.Access{Conditions: []ir.AccessCondition{of("c"), of(level)}}, http.Header{"X-Level": {level}}
		},
		"many": func(level string) (*ir.Access, http.Header) { // addresses, of which nobody has one
			c := ir.AccessCondition{Name: level}
			for i := range maxInList + 1 {
				c.Allow = append(c.Allow, netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 32))
			}
			return &ir.Access{Conditions: []ir.AccessCondition{c}}, nil
		},
		"never": func(string) (*ir.Access, http.Header) {
			return &ir.Access{Conditions: []ir.AccessCondition{{Never: true}}}, nil
		},
	}
	names := slices.Sorted(maps.Keys(kinds))
	for _, listener := range []string{"nothing", "keys", "tokens", "never", "when", "many"} {
		// One Envoy for each kind at the listener: a host for each kind there, a rule for each.
		var hosts []*ir.Host
		for _, host := range names {
			var rules []*ir.Rule
			for _, rule := range names {
				a, _ := kinds[rule]("rule")
				rules = append(rules, &ir.Rule{Match: prefix("/" + rule), Filters: ir.Filters{Access: a}, Backends: to(b)})
			}
			one := rulesOn(host+".example", rules...)
			if a, _ := kinds[host]("host"); a != nil {
				one[0].Filters = &ir.Filters{Access: a}
			}
			hosts = append(hosts, one...)
		}
		s := plain(hosts, b)
		if a, _ := kinds[listener]("listener"); a != nil {
			s.listeners[0].Filters = &ir.Filters{Access: a}
		}
		r := s.start(t)
		for _, host := range names {
			for _, rule := range names {
				said := []string{listener, host, rule}
				inner := -1
				for i, kind := range said {
					if kind != "nothing" {
						inner = i
					}
				}
				for i, level := range levels {
					for _, kind := range []string{"keys", "tokens", "when"} {
						_, header := kinds[kind](level)
						passes := inner < 0 || said[inner] == "open" || said[inner] == "address" || i == inner && said[inner] == kind
						got := r.do(t, http.MethodGet, (&url.URL{Scheme: "http", Host: host + ".example", Path: "/" + rule}).String(), header, nil)
						if (got.Status == 200) != passes {
							t.Errorf("listener %s, host %s, rule %s: %s of the %s: %d", listener, host, rule, kind, level, got.Status)
						}
					}
				}
			}
		}
	}
}
