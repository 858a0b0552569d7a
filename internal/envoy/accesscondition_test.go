package envoy

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// whenRequest is a request of which an expression is true, or can't be told; or is not.
type whenRequest struct {
	what, method, host, path string
	header                   http.Header
	asked                    bool
}

// whenCase is an expression with requests.
type whenCase struct {
	when     string
	requests []whenRequest
}

// whenKeys are those by which clients are known in whenCases.
var whenKeys = map[string]string{"alice": "secret", "bob": "other"}

// whenCases are expressions with requests of clients that have a key or a token of an issuer.
func whenCases(t *testing.T, id *issuer) []whenCase {
	bearer := func(claims map[string]any) http.Header {
		return http.Header{"Authorization": {"Bearer " + id.token(t, claims)}}
	}
	key := whenKey
	return []whenCase{
		{`request.path.startsWith('/admin')`, []whenRequest{
			{"the path", "GET", "", "/admin", nil, true},
			{"below it", "GET", "", "/admin/x?y", nil, true},
			{"another", "GET", "", "/public", nil, false},
			{"in the query", "GET", "", "/public?/admin", nil, false},
			{"escaped", "GET", "", "/%61dmin", nil, true},
			{"dot segments", "GET", "", "/public/../admin", nil, true},
			{"escaped dot segments", "GET", "", "/public/%2e%2E/admin", nil, true},
			{"two slashes", "GET", "", "//admin", nil, true},
			{"out of it", "GET", "", "/admin/../public", nil, false},
			{"in capitals, which is another path", "GET", "", "/ADMIN", nil, false},
		}},
		{`request.path == '/exact'`, []whenRequest{
			{"with a query", "GET", "", "/exact?a=b", nil, true},
			{"with an empty query", "GET", "", "/exact?", nil, true},
			{"with two", "GET", "", "/exact?a?b", nil, true},
			{"with a dot", "GET", "", "/./exact", nil, true},
			{"longer", "GET", "", "/exact/", nil, false},
		}},
		{`request.query.contains('debug')`, []whenRequest{
			{"in the query", "GET", "", "/?debug", nil, true}, {"in the path", "GET", "", "/debug", nil, false}, {"without", "GET", "", "/", nil, false},
		}},
		{`!(request.method in ['GET', 'HEAD'])`, []whenRequest{
			{"a write", "POST", "", "/", nil, true}, {"a read", "GET", "", "/", nil, false}, {"another read", "HEAD", "", "/", nil, false},
		}},
		{`request.host == 'host.example'`, []whenRequest{
			{"the host", "GET", "host.example", "/", nil, true},
			{"in capitals", "GET", "HOST.Example", "/", nil, true},
			{"with a port", "GET", "host.example:8080", "/", nil, true},
			{"with a dot", "GET", "host.example.", "/", nil, true},
			{"with both", "GET", "Host.example.:80", "/", nil, true},
			{"another", "GET", "other.example", "/", nil, false},
			{"an address", "GET", "[::1]:80", "/", nil, false},
		}},
		{`request.headers['X-Tenant'] == 'a'`, []whenRequest{
			{"the value", "GET", "", "/", key(http.Header{"X-Tenant": {"a"}}), true},
			{"another", "GET", "", "/", key(http.Header{"X-Tenant": {"b"}}), false},
			{"none", "GET", "", "/", nil, true},
			{"two, which are another", "GET", "", "/", key(http.Header{"X-Tenant": {"a", "a"}}), false},
		}},
		{`'x-tenant' in request.headers && request.headers['x-tenant'] == 'a'`, []whenRequest{
			{"the value", "GET", "", "/", key(http.Header{"X-Tenant": {"a"}}), true}, {"none", "GET", "", "/", nil, false},
		}},
		{`has(request.headers.etag) || false`, []whenRequest{
			{"there", "GET", "", "/", key(http.Header{"Etag": {"a"}}), true}, {"none", "GET", "", "/", nil, false},
		}},
		{`request.headers['x-b'].matches('^b(c|d)+$')`, []whenRequest{
			{"a match", "GET", "", "/", key(http.Header{"X-B": {"bcd"}}), true}, {"none", "GET", "", "/", key(http.Header{"X-B": {"abcd"}}), false},
		}},
		// As large as Envoy may take them to be.
		{`request.path.matches('^.{5}[^/][^/]$')`, []whenRequest{
			{"a match", "GET", "", "/123456", nil, true}, {"none", "GET", "", "/1234567", nil, false},
		}},
		{`request.path.matches('(?i)^/ksksksksksksks$')`, []whenRequest{
			{"a match", "GET", "", "/KsKsKsKsKsKsKs", nil, true}, {"none", "GET", "", "/k", nil, false},
		}},
		{`auth.claims.role == 'guest'`, []whenRequest{
			{"the claim", "GET", "", "/", bearer(map[string]any{"role": "guest"}), true},
			{"another", "GET", "", "/", bearer(map[string]any{"role": "admin"}), false},
			{"of another type", "GET", "", "/", bearer(map[string]any{"role": 7}), false},
			{"none", "GET", "", "/", bearer(nil), true},
			{"no token", "GET", "", "/", nil, true},
		}},
		{`has(auth.claims.realm.admin) && auth.claims.realm.admin`, []whenRequest{
			{"a truth", "GET", "", "/", bearer(map[string]any{"realm": map[string]any{"admin": true}}), true},
			{"no truth", "GET", "", "/", bearer(map[string]any{"realm": map[string]any{"admin": "no"}}), true},
			{"a lie", "GET", "", "/", bearer(map[string]any{"realm": map[string]any{"admin": false}}), false},
			{"nothing", "GET", "", "/", bearer(map[string]any{"realm": map[string]any{}}), false},
		}},
		{`has(auth.claims.role) && auth.claims.role == 'user'`, []whenRequest{
			{"the claim", "GET", "", "/", bearer(map[string]any{"role": "user"}), true},
			{"another", "GET", "", "/", bearer(map[string]any{"role": "admin"}), false},
			{"none", "GET", "", "/", bearer(nil), false},
			{"no token", "GET", "", "/", nil, false},
		}},
		{`!has(auth.claims.role)`, []whenRequest{
			{"the claim", "GET", "", "/", bearer(map[string]any{"role": "user"}), false},
			{"none", "GET", "", "/", bearer(nil), true},
			{"no token", "GET", "", "/", nil, true},
		}},
		{`has(auth.claims['https://x/a'].b.c)`, []whenRequest{
			{"the claim", "GET", "", "/", bearer(map[string]any{"https://x/a": map[string]any{"b": map[string]any{"c": 1}}}), true},
			{"half of it", "GET", "", "/", bearer(map[string]any{"https://x/a": map[string]any{}}), false},
			{"nothing of it", "GET", "", "/", bearer(nil), false},
			{"no token", "GET", "", "/", nil, false},
		}},
		{`'https://x/role' in auth.claims`, []whenRequest{
			{"the claim", "GET", "", "/", bearer(map[string]any{"https://x/role": 1}), true},
			{"none", "GET", "", "/", bearer(nil), false},
			{"no token", "GET", "", "/", nil, false},
		}},
		{`'a' in auth.claims.roles`, []whenRequest{
			{"in the list", "GET", "", "/", bearer(map[string]any{"roles": []string{"a"}}), true},
			{"not in it", "GET", "", "/", bearer(map[string]any{"roles": []string{"b"}}), false},
			{"no list", "GET", "", "/", bearer(nil), true},
			{"no token", "GET", "", "/", nil, true},
		}},
		{`has(auth.client) && auth.client == 'alice'`, []whenRequest{
			{"the client", "GET", "", "/", nil, true},
			{"another", "GET", "", "/", http.Header{"X-Api-Key": {"other"}}, false},
			{"one with a token", "GET", "", "/", bearer(nil), false},
		}},
		{`has(auth.claims)`, []whenRequest{
			{"a token", "GET", "", "/", bearer(nil), true}, {"no token", "GET", "", "/", nil, false},
		}},
		{`'admin' in auth.claims.roles || auth.claims.level > 2`, []whenRequest{
			{"in the list", "GET", "", "/", bearer(map[string]any{"roles": []string{"a", "admin"}}), true},
			{"not in it", "GET", "", "/", bearer(map[string]any{"roles": []string{"a"}, "level": 1}), false},
			{"a number", "GET", "", "/", bearer(map[string]any{"roles": []string{"a"}, "level": 3}), true},
		}},
		{`auth.client != 'alice'`, []whenRequest{
			{"the client", "GET", "", "/", nil, false},
			{"another", "GET", "", "/", http.Header{"X-Api-Key": {"other"}}, true},
			{"one with a token", "GET", "", "/", bearer(nil), true},
		}},
	}
}

// whenKey has the key of alice, and more.
func whenKey(more http.Header) http.Header {
	h := http.Header{"X-Api-Key": {whenKeys["alice"]}}
	maps.Copy(h, more)
	return h
}

// domain is that of the host for the case with a number.
func (c whenCase) domain(i int) string {
	if strings.Contains(c.when, "request.host") {
		return "*"
	}
	return fmt.Sprintf("c%d.example", i)
}

// ask sends a request of the case with a number.
func (q whenRequest) ask(t *testing.T, r *running, i int) answered {
	t.Helper()
	host, h := q.host, q.header
	if host == "" {
		host = fmt.Sprintf("c%d.example", i)
	}
	if h == nil {
		h = whenKey(nil)
	}
	return r.do(t, q.method, "http://"+host+q.path, h, nil)
}

// A condition is asked of exactly those requests that its expression is true of, and of those of
// which Envoy can't tell.
func TestEnvoyAccessWhen(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	id := newIssuer(t, "id")
	cases := whenCases(t, id)
	var hosts []*ir.Host
	for i, c := range cases {
		hosts = append(hosts, rulesOn(c.domain(i), &ir.Rule{Match: prefix("/"), Backends: to(b), Filters: ir.Filters{Access: &ir.Access{
			Authenticated: true, Tokens: []ir.TokenIssuer{id.trusted(t)}, Keys: []ir.APIKeys{apiKeys("k", whenKeys)},
			Conditions: []ir.AccessCondition{{Name: "never", Never: true, When: c.when}, {Name: "all", Methods: []string{"GET", "HEAD", "POST"}}},
		}}})...)
	}
	r := plain(hosts, b).start(t)
	for i, c := range cases {
		for _, q := range c.requests {
			want := http.StatusOK
			if q.asked {
				want = http.StatusForbidden
			}
			if a := q.ask(t, r, i); a.Status != want {
				t.Errorf("%s: %s: %d, want %d", c.when, q.what, a.Status, want)
			}
		}
		if a := r.get(t, fmt.Sprintf("http://c%d.example/", i)); a.Status != http.StatusUnauthorized && c.domain(i) != "*" {
			t.Errorf("%s: without credentials: %d", c.when, a.Status)
		}
	}
}

// Methods and headers are conditions like any other, and none of them is met by what is not there.
func TestEnvoyAccessByRequest(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	guarded := func(path string, c ir.AccessCondition) *ir.Rule {
		return &ir.Rule{Match: prefix(path), Filters: ir.Filters{Access: &ir.Access{Conditions: []ir.AccessCondition{c}}}, Backends: to(b)}
	}
	tenant := []ir.HeaderValues{{Name: "x-tenant", Values: []string{"a", "b"}}}
	r := plain(rulesOn("a.example",
		guarded("/read", ir.AccessCondition{Methods: []string{"GET", "HEAD"}}),
		guarded("/tenant", ir.AccessCondition{Headers: tenant}),
		guarded("/both", ir.AccessCondition{Headers: append(tenant, ir.HeaderValues{Name: "x-z", Values: []string{"z"}})}),
		guarded("/write", ir.AccessCondition{Name: "w", Headers: tenant, When: "request.method == 'POST'"}),
		guarded("/host", ir.AccessCondition{Name: "h", Headers: tenant, When: "request.host == 'a.example'"}),
		guarded("/nobody", ir.AccessCondition{Name: "n", Never: true, When: "has(auth.claims.role) || has(auth.client)"}),
	), b).start(t)
	for _, c := range []struct {
		method, path string
		header       http.Header
		want         int
	}{
		{"GET", "/read", nil, 200}, {"HEAD", "/read", nil, 200}, {"POST", "/read", nil, 403},
		{"GET", "/read", http.Header{"X-Http-Method-Override": {"POST"}}, 200},
		{"GET", "/tenant", nil, 403}, {"GET", "/tenant", http.Header{"X-Tenant": {"a"}}, 200}, {"GET", "/tenant", http.Header{"X-Tenant": {"A"}}, 403},
		{"GET", "/tenant", http.Header{"X-Tenant": {"a", "b"}}, 403}, {"GET", "/tenant", http.Header{"X-Tenant": {"a", "a"}}, 403}, {"GET", "/tenant", http.Header{"X-Tenant": {""}}, 403},
		{"GET", "/tenant", http.Header{"X-Tenant": {"ab"}}, 403}, {"GET", "/tenant", http.Header{"X_tenant": {"a"}}, 403},
		{"GET", "/both", http.Header{"X-Tenant": {"a"}}, 403}, {"GET", "/both", http.Header{"X-Tenant": {"a"}, "X-Z": {"z"}}, 200},
		{"GET", "/write", nil, 200}, {"POST", "/write", nil, 403}, {"POST", "/write", http.Header{"X-Tenant": {"b"}}, 200},
		{"GET", "/host", nil, 403}, {"GET", "/host", http.Header{"X-Tenant": {"b"}}, 200}, {"GET", "/nobody", nil, 200},
	} {
		if a := r.do(t, c.method, "http://a.example"+c.path, c.header, nil); a.Status != c.want {
			t.Errorf("%s %s with %v: %d, want %d", c.method, c.path, c.header, a.Status, c.want)
		}
	}
}

// An expression that can't be given to Envoy costs its own host, and opens nothing.
func TestAccessWhenUnreadable(t *testing.T) {
	a := &ir.Access{Conditions: []ir.AccessCondition{{Name: "c", Methods: []string{"GET"}, When: "nonsense("}}}
	if _, err := access(a, guards{}); err == nil {
		t.Error("accepted")
	}
}
