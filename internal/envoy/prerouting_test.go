package envoy

import (
	"net/http"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// tenants is a service that says whose a request is, by its credentials: the part before a colon is the tenant.
func tenants(t *testing.T) *backend {
	t.Helper()
	return newBackend(t, "tenants", ir.HTTP1, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch tenant := r.Header.Get("Authorization"); tenant {
		case "deny":
			w.WriteHeader(http.StatusUnauthorized)
		case "":
		default:
			w.Header().Set("X-Tenant", tenant)
			for _, name := range []string{"Host", ":authority", ":path", ":method", "X-Envoy-Gatehouse-Shard", "X-Envoy-Original-Dst-Host"} {
				w.Header().Set(name, "/guarded")
			}
		}
	}))
}

func byTenant(name string) ir.Match {
	m := prefix("/")
	m.Headers = []ir.ValueMatch{{Name: "x-tenant", Value: name}}
	return m
}

// A request goes by the rule that the headers of the service lead to, and past no guard: of the rule that it matches
// before, of the one that it matches behind, and of the host.
func TestEnvoyPrerouting(t *testing.T) {
	b, service := newBackend(t, "echo", ir.HTTP1, nil), tenants(t)
	other := newBackend(t, "other", ir.HTTP1, nil)
	closed := ir.Filters{Access: &ir.Access{Conditions: []ir.AccessCondition{{Never: true}}}}
	ask := func() *ir.Prerouting {
		return &ir.Prerouting{Auth: []*ir.Auth{{Backend: service.ir.Key(), Timeout: 5 * time.Second, ResponseHeaders: []string{"x-tenant"}}}}
	}
	post := prefix("/posted")
	post.Method = http.MethodPost
	hosts := rulesOn("a.example",
		&ir.Rule{Match: prefix("/guarded"), Filters: closed, Backends: to(b)},
		&ir.Rule{Match: post, Filters: closed, Backends: to(b)},
		&ir.Rule{Match: byTenant("guarded"), Filters: closed, Backends: to(b)},
		&ir.Rule{Match: byTenant("blue"), Backends: to(other)},
		&ir.Rule{Match: prefix("/open"), Backends: to(b)},
		&ir.Rule{Match: byTenant("gone"), Filters: closed, Status: http.StatusGone, Body: "why"},
		&ir.Rule{Match: prefix("/moved"), Redirect: &ir.Redirect{Hostname: "elsewhere.example", Status: http.StatusFound}},
	)
	hosts[0].Prerouting = ask()
	hosts = append(hosts, rulesOn("b.example", &ir.Rule{Match: prefix("/"), Backends: to(b)})...)
	around := rulesOn("c.example", &ir.Rule{Match: byTenant("blue"), Backends: to(other)})
	around[0].Prerouting, around[0].Filters = ask(), &closed
	broken := rulesOn("d.example", &ir.Rule{Match: prefix("/"), Backends: to(b)})
	broken[0].Prerouting = &ir.Prerouting{Closed: true}
	twice := rulesOn("e.example", &ir.Rule{Match: byTenant("blue"), Backends: to(other)})
	twice[0].Prerouting = ask()
	twice[0].Prerouting.Auth = append(twice[0].Prerouting.Auth, twice[0].Prerouting.Auth[0])
	hosts = append(append(append(hosts, around...), broken...), twice...)
	r := plain(hosts, b, other, service).start(t)

	for _, c := range []struct {
		url, tenant string
		own         http.Header
		status      int
		backend     string
	}{
		{"http://a.example/open", "", nil, http.StatusOK, "echo"},
		{"http://a.example/", "blue", nil, http.StatusOK, "other"},
		{"http://a.example/open", "blue", nil, http.StatusOK, "other"},
		{"http://a.example/", "", nil, http.StatusNotFound, ""},
		{"http://a.example/", "red", nil, http.StatusNotFound, ""},
		{"http://a.example/open", "deny", nil, http.StatusUnauthorized, ""},
		{"http://a.example/none", "deny", nil, http.StatusUnauthorized, ""},
		{"http://a.example/moved", "", nil, http.StatusFound, ""},
		{"http://a.example/moved", "deny", nil, http.StatusUnauthorized, ""},
		{"http://a.example/guarded", "", nil, http.StatusForbidden, ""},
		{"http://a.example/guarded", "guarded", nil, http.StatusForbidden, ""},
		// Behind a guard that has not run, and from a guarded rule to another one.
		{"http://a.example/open", "guarded", nil, http.StatusInternalServerError, ""},
		{"http://a.example/", "guarded", nil, http.StatusInternalServerError, ""},
		{"http://a.example/", "gone", nil, http.StatusInternalServerError, ""},
		// Clients say nothing of tenants.
		{"http://a.example/", "", http.Header{"X-Tenant": {"blue"}}, http.StatusNotFound, ""},
		{"http://a.example/", "", http.Header{"X_tenant": {"blue"}}, http.StatusNotFound, ""},
		{"http://a.example/open", "", http.Header{"X-Tenant": {"guarded"}}, http.StatusForbidden, ""},
		{"http://a.example/open", "blue", http.Header{"X-Tenant": {"guarded"}}, http.StatusForbidden, ""},
		{"http://a.example/", "guarded", http.Header{"X-Tenant": {"blue"}}, http.StatusInternalServerError, ""},
		{"http://b.example/", "deny", nil, http.StatusOK, "echo"},
		{"http://c.example/", "blue", nil, http.StatusForbidden, ""},
		{"http://c.example/", "deny", nil, http.StatusUnauthorized, ""},
		{"http://d.example/", "", nil, http.StatusInternalServerError, ""},
		{"http://e.example/", "blue", nil, http.StatusOK, "other"},
	} {
		h := c.own.Clone()
		if h == nil {
			h = http.Header{}
		}
		if c.tenant != "" {
			h.Set("Authorization", c.tenant)
		}
		got := r.do(t, http.MethodGet, c.url, h, nil)
		if got.Status != c.status || got.Seen.Backend != c.backend {
			t.Errorf("%s of %q, %v: %d from %q, want %d from %q", c.url, c.tenant, c.own, got.Status, got.Seen.Backend, c.status, c.backend)
		}
		if got.Seen.Backend == "other" {
			if s := got.Seen; s.Header.Get("X-Tenant") != "blue" || s.Host == "/guarded" || s.Path == "/guarded" || len(s.Header["X-Envoy-Gatehouse-Shard"]) > 0 {
				t.Errorf("%s: the backend is told %+v", c.url, s)
			}
		}
	}
}
