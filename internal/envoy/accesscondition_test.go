package envoy

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// A condition is asked of exactly those requests that its expression is true of, and of those of
// which Envoy can't tell.
func TestEnvoyAccessWhen(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	id := newIssuer(t, "id")
	bearer := func(claims map[string]any) http.Header {
		return http.Header{"Authorization": {"Bearer " + id.token(t, claims)}}
	}
	key := func(more http.Header) http.Header {
		h := http.Header{"X-Api-Key": {"secret"}}
		maps.Copy(h, more)
		return h
	}
	type request struct {
		what, method, host, path string
		header                   http.Header
		asked                    bool
	}
	cases := []struct {
		when     string
		requests []request
	}{
		{`request.path.startsWith('/admin')`, []request{
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
		{`request.path == '/exact'`, []request{
			{"with a query", "GET", "", "/exact?a=b", nil, true},
			{"with an empty query", "GET", "", "/exact?", nil, true},
			{"with two", "GET", "", "/exact?a?b", nil, true},
			{"with a dot", "GET", "", "/./exact", nil, true},
			{"longer", "GET", "", "/exact/", nil, false},
		}},
		{`request.query.contains('debug')`, []request{
			{"in the query", "GET", "", "/?debug", nil, true}, {"in the path", "GET", "", "/debug", nil, false}, {"without", "GET", "", "/", nil, false},
		}},
		{`!(request.method in ['GET', 'HEAD'])`, []request{
			{"a write", "POST", "", "/", nil, true}, {"a read", "GET", "", "/", nil, false}, {"another read", "HEAD", "", "/", nil, false},
		}},
		{`request.host == 'host.example'`, []request{
			{"the host", "GET", "host.example", "/", nil, true},
			{"in capitals", "GET", "HOST.Example", "/", nil, true},
			{"with a port", "GET", "host.example:8080", "/", nil, true},
			{"with a dot", "GET", "host.example.", "/", nil, true},
			{"with both", "GET", "Host.example.:80", "/", nil, true},
			{"another", "GET", "other.example", "/", nil, false},
			{"an address", "GET", "[::1]:80", "/", nil, false},
		}},
		{`request.headers['X-Tenant'] == 'a'`, []request{
			{"the value", "GET", "", "/", key(http.Header{"X-Tenant": {"a"}}), true},
			{"another", "GET", "", "/", key(http.Header{"X-Tenant": {"b"}}), false},
			{"none", "GET", "", "/", nil, true},
			{"two, which are another", "GET", "", "/", key(http.Header{"X-Tenant": {"a", "a"}}), false},
		}},
		{`'x-tenant' in request.headers && request.headers['x-tenant'] == 'a'`, []request{
			{"the value", "GET", "", "/", key(http.Header{"X-Tenant": {"a"}}), true}, {"none", "GET", "", "/", nil, false},
		}},
		{`has(request.headers.etag) || false`, []request{
			{"there", "GET", "", "/", key(http.Header{"Etag": {"a"}}), true}, {"none", "GET", "", "/", nil, false},
		}},
		{`request.headers['x-b'].matches('^b(c|d)+$')`, []request{
			{"a match", "GET", "", "/", key(http.Header{"X-B": {"bcd"}}), true}, {"none", "GET", "", "/", key(http.Header{"X-B": {"abcd"}}), false},
		}},
		// As large as Envoy may take them to be.
		{`request.path.matches('^.{5}[^/][^/]$')`, []request{
			{"a match", "GET", "", "/123456", nil, true}, {"none", "GET", "", "/1234567", nil, false},
		}},
		{`request.path.matches('(?i)^/ksksksksksksks$')`, []request{
			{"a match", "GET", "", "/KsKsKsKsKsKsKs", nil, true}, {"none", "GET", "", "/k", nil, false},
		}},
		{`auth.claims.role == 'guest'`, []request{
			{"the claim", "GET", "", "/", bearer(map[string]any{"role": "guest"}), true},
			{"another", "GET", "", "/", bearer(map[string]any{"role": "admin"}), false},
			{"of another type", "GET", "", "/", bearer(map[string]any{"role": 7}), false},
			{"none", "GET", "", "/", bearer(nil), true},
			{"no token", "GET", "", "/", nil, true},
		}},
		{`has(auth.claims.realm.admin) && auth.claims.realm.admin`, []request{
			{"a truth", "GET", "", "/", bearer(map[string]any{"realm": map[string]any{"admin": true}}), true},
			{"no truth", "GET", "", "/", bearer(map[string]any{"realm": map[string]any{"admin": "no"}}), true},
			{"a lie", "GET", "", "/", bearer(map[string]any{"realm": map[string]any{"admin": false}}), false},
			{"nothing", "GET", "", "/", bearer(map[string]any{"realm": map[string]any{}}), false},
		}},
		{`'admin' in auth.claims.roles || auth.claims.level > 2`, []request{
			{"in the list", "GET", "", "/", bearer(map[string]any{"roles": []string{"a", "admin"}}), true},
			{"not in it", "GET", "", "/", bearer(map[string]any{"roles": []string{"a"}, "level": 1}), false},
			{"a number", "GET", "", "/", bearer(map[string]any{"roles": []string{"a"}, "level": 3}), true},
		}},
		{`auth.client != 'alice'`, []request{
			{"the client", "GET", "", "/", nil, false},
			{"another", "GET", "", "/", http.Header{"X-Api-Key": {"other"}}, true},
			{"one with a token", "GET", "", "/", bearer(nil), true},
		}},
	}
	var hosts []*ir.Host
	for i, c := range cases {
		domain := fmt.Sprintf("c%d.example", i)
		if strings.Contains(c.when, "request.host") {
			domain = "*"
		}
		hosts = append(hosts, rulesOn(domain, &ir.Rule{Match: prefix("/"), Backends: to(b), Filters: ir.Filters{Access: &ir.Access{
			Authenticated: true, Tokens: []ir.TokenIssuer{id.trusted(t)},
			Keys:       []ir.APIKeys{apiKeys("k", map[string]string{"alice": "secret", "bob": "other"})},
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
			host, h := q.host, q.header
			if host == "" {
				host = fmt.Sprintf("c%d.example", i)
			}
			if h == nil {
				h = key(nil)
			}
			if a := r.do(t, q.method, "http://"+host+q.path, h, nil); a.Status != want {
				t.Errorf("%s: %s: %d, want %d", c.when, q.what, a.Status, want)
			}
		}
		if a := r.get(t, fmt.Sprintf("http://c%d.example/", i)); a.Status != http.StatusUnauthorized && !strings.Contains(c.when, "host") {
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
		{"GET", "/host", nil, 403}, {"GET", "/host", http.Header{"X-Tenant": {"b"}}, 200},
	} {
		if a := r.do(t, c.method, "http://a.example"+c.path, c.header, nil); a.Status != c.want {
			t.Errorf("%s %s with %v: %d, want %d", c.method, c.path, c.header, a.Status, c.want)
		}
	}
}

// An expression that can't be given to Envoy costs its own host, and opens nothing.
func TestAccessWhenUnreadable(t *testing.T) {
	a := &ir.Access{Conditions: []ir.AccessCondition{{Name: "c", Methods: []string{"GET"}, When: "nonsense("}}}
	if _, err := access(a, nil); err == nil {
		t.Error("accepted")
	}
}
