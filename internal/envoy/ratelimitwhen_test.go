package envoy

import (
	"net/http"
	"slices"
	"testing"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// A limited is a limit with an expression that says for which requests it is; empty for all.
type limited struct {
	ir.RateLimit
	when string
}

// countedWhen is how requests are counted for some limits.
func countedWhen(all ...limited) *ir.RateLimits {
	out := &ir.RateLimits{}
	for _, l := range all {
		c := countedBy(l.RateLimit).Counted[0]
		c.When = l.when
		out.Counted = append(out.Counted, c)
	}
	return out
}

// A limit counts exactly those requests that its expression is true of, and those of which Envoy
// can't tell.
func TestEnvoyLimitsWhen(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	id := newIssuer(t, "id")
	cases := whenCases(t, id)
	many := limitNamed("many", 1000)
	var hosts []*ir.Host
	for i, c := range cases {
		hosts = append(hosts, rulesOn(c.domain(i), &ir.Rule{Match: prefix("/"), Backends: to(b), Filters: ir.Filters{
			Access: &ir.Access{
				Authenticated: true, Tokens: []ir.TokenIssuer{id.trusted(t)}, Keys: []ir.APIKeys{apiKeys("k", whenKeys)},
				Conditions: []ir.AccessCondition{{Name: "beside", Methods: []string{"GET", "HEAD", "POST"}, When: c.when}},
			},
			RateLimits: countedWhen(limited{many, c.when}),
		}})...)
	}
	s := plain(hosts, b)
	s.limits = []ir.RateLimit{many}
	r := s.start(t)
	for i, c := range cases {
		for _, q := range c.requests {
			a := q.ask(t, r, i)
			if counted := a.Header.Get("X-Ratelimit-Limit") != ""; a.Status != http.StatusOK || counted != q.asked {
				t.Errorf("%s: %s: %d, counted: %t, want %t", c.when, q.what, a.Status, counted, q.asked)
			}
		}
	}
}

// manyLevels are limits with expressions at all levels, and requests of which so many of three pass.
func manyLevels(b *backend) (s *setup, cases []passing) {
	var limits []ir.RateLimit
	only := func(name string, most uint32, when string) limited {
		l := limited{limitNamed(name, most), when}
		limits = append(limits, l.RateLimit)
		return l
	}
	rule := func(path string, all ...limited) *ir.Rule {
		return &ir.Rule{Match: prefix(path), Filters: ir.Filters{RateLimits: countedWhen(all...)}, Backends: to(b)}
	}
	const tenant = "'x-tenant' in request.headers && request.headers['x-tenant'] == "
	hosts := rulesOn("a.example",
		rule("/two", only("writes", 1, "request.method == 'POST'"), only("a", 2, tenant+"'a'")),
		rule("/same", only("same-1", 2, tenant+"'b'"), only("same-2", 1, tenant+"'b'")),
		rule("/missing", only("missing", 1, "request.headers['x-tenant'] == 'a'")),
		rule("/all", only("all", 1, "")),
		rule("/none"),
		&ir.Rule{Match: prefix("/"), Backends: to(b)},
	)
	hosts[0].Filters = &ir.Filters{RateLimits: countedWhen(only("host", 2, "request.path.startsWith('/')"), only("host-c", 1, tenant+"'c'"))}
	s = plain(hosts, b)
	s.limits = limits
	as := func(tenant string) http.Header { return http.Header{"X-Tenant": {tenant}} }
	return s, []passing{
		{"neither of two", "GET", "/two", nil, 3},
		{"the first of two", "POST", "/two", nil, 1},
		{"the second of two", "GET", "/two", as("a"), 2},
		{"the first, which is used up", "POST", "/two", as("b"), 0},
		{"neither, still", "GET", "/two", as("b"), 3},
		{"two for the same", "GET", "/same", as("b"), 1},
		{"none of them", "GET", "/same", as("a"), 3},
		{"one who is not to be counted", "GET", "/missing", as("b"), 3},
		{"one of whom nobody can tell", "GET", "/missing", nil, 1},
		{"one who is, and it is used up", "GET", "/missing", as("a"), 0},
		{"a limit for all in a host with others", "GET", "/all", as("x"), 1},
		{"no limit in a host with some", "GET", "/none", as("c"), 3},
		{"the host's", "GET", "/", as("x"), 2},
	}
}

// passing is a request of which so many of three pass.
type passing struct {
	what, method, path string
	header             http.Header
	passed             int
}

func (p passing) check(t *testing.T, r *running) {
	t.Helper()
	passed := 0
	for range 3 {
		switch status := r.asked(t, p.method, p.path, p.header).StatusCode; status {
		case http.StatusOK:
			passed++
		case http.StatusTooManyRequests:
		default:
			t.Errorf("%s: answered %d", p.what, status)
		}
	}
	if passed != p.passed {
		t.Errorf("%s: %d of 3 passed, want %d", p.what, passed, p.passed)
	}
}

// Limits with expressions are apart from each other, on one route and on levels around it.
func TestEnvoyLimitsWhenOnLevels(t *testing.T) {
	s, cases := manyLevels(newBackend(t, "echo", ir.HTTP1, nil))
	r := s.start(t)
	for _, c := range cases {
		c.check(t, r)
	}
}

// Nothing that a client sends says for which limits a request is not.
func TestEnvoyLimitsWhenAreNotForged(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	const when = "request.method == 'GET'"
	l := limitNamed("reads", 1)
	s := plain(rulesOn("a.example", &ir.Rule{Match: prefix("/"), Backends: to(b), Filters: ir.Filters{RateLimits: countedWhen(limited{l, when})}}), b)
	s.limits = []ir.RateLimit{l}
	r := s.start(t)
	passing{"the first", "GET", "/", nil, 1}.check(t, r)
	key := limitCondition{when: when}.name() + "." + shadowPolicy
	for _, forged := range []http.Header{
		{key: {"exempt"}},
		{limitCondition{when: when}.name(): {"exempt"}, "X-" + key: {"exempt"}},
		{rbacMetadata: {key + "=exempt"}, limitsWhen: {"exempt"}, shadowPolicy: {"exempt"}},
		{"Limit": {"other"}, "X-Envoy-Ratelimited": {"false"}, "X-Envoy-Dynamic-Metadata": {`{"` + rbacMetadata + `":{"` + key + `":"exempt"}}`}},
		{"X-Http-Method-Override": {"POST"}, "X-Envoy-Original-Method": {"POST"}},
	} {
		passing{"forged", "GET", "/", forged, 0}.check(t, r)
	}
	passing{"another method", "POST", "/", nil, 3}.check(t, r)
}

// Where nobody has found out for which requests a limit is, it is for all.
func TestEnvoyLimitsWhenNobodyFoundOut(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	l := limitNamed("writes", 2)
	s := plain(rulesOn("a.example", &ir.Rule{Match: prefix("/"), Backends: to(b), Filters: ir.Filters{RateLimits: countedWhen(limited{l, "request.method == 'POST'"})}}), b)
	s.limits = []ir.RateLimit{l}
	s.adjust = func(m *hcmv3.HttpConnectionManager) {
		m.HttpFilters = slices.DeleteFunc(slices.Clone(m.HttpFilters), func(f *hcmv3.HttpFilter) bool { return f.Name == limitsWhen })
	}
	passing{"a read", "GET", "/", nil, 2}.check(t, s.start(t))
}

// A limit with an expression says nothing of who may pass, and one whose expression can't be given to
// Envoy is not left out without a word.
func TestLimitsWhenGuardNobody(t *testing.T) {
	host := func(when string) *Part {
		h := rulesOn("a.example", &ir.Rule{Match: prefix("/"), Status: 404, Filters: ir.Filters{RateLimits: countedWhen(limited{limitNamed("a", 1), when})}})[0]
		p, errs := HostPart(h)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return p
	}
	if a, b := host("request.method == 'GET'"), host("request.method == 'POST'"); a.Hash == b.Hash {
		t.Error("the expression is not in the host")
	} else if len(a.Guard)+len(b.Guard) > 0 {
		t.Error("a limit says who may pass")
	}
	h := rulesOn("a.example", &ir.Rule{Match: prefix("/"), Filters: ir.Filters{RateLimits: countedWhen(limited{limitNamed("a", 1), "nonsense("})}})[0]
	if _, errs := HostPart(h); len(errs) == 0 {
		t.Error("an expression that can't be given to Envoy is left out")
	}
}
