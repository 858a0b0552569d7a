//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// tenantService says whose a request is by its path and query, and adds headers that it has no business with.
func tenantService(t *testing.T) (port int) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch tenant := r.URL.Query().Get("tenant"); tenant {
		case "":
		case "deny":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.Header().Set("X-Tenant", tenant)
			w.Header().Set("X-Envoy-Gatehouse-Shard", "none")
		}
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// TestListenerFilters has a service decide by which route requests go, of a table that is whole and of one that was in
// shards: past no guard, on no other listener, and for nobody who says whose a request is himself.
func TestListenerFilters(t *testing.T) {
	t.Parallel()
	t.Run("whole table", func(t *testing.T) {
		t.Parallel()
		routesByTenant(t, nil, siteGateway)
	})
	t.Run("divided table", func(t *testing.T) {
		t.Parallel()
		routesByTenant(t, inShards(t, nil), func(listeners ...string) string { return withShards(siteGateway(listeners...)) })
	})
}

func routesByTenant(t *testing.T, more map[string]string, gateway func(listeners ...string) string) {
	t.Helper()
	const plain, exact, wild = "{name: http, port: 80, protocol: HTTP}", "host.tenants.example", "any.wild.example"
	asking := func(name, host, service string) string {
		return fmt.Sprintf("{name: %s, port: 80, protocol: HTTP, hostname: '%s', filters: {requests: [{type: ExternalAuth, externalAuth: "+
			"{protocol: HTTP, backendRef: {name: %s, port: 8080}, http: {allowedResponseHeaders: [X-Tenant]}}}]}}", name, host, service)
	}
	rules := `- matches: [{headers: [{name: x-tenant, value: blue}]}]
  backendRefs: [{name: v2, port: 8080}]
- name: guarded
  matches: [{headers: [{name: x-tenant, value: guarded}]}, {path: {value: /guarded}}]
  backendRefs: [{name: v2, port: 8080}]
- matches: [{path: {value: /open}}]
  backendRefs: [{name: v1, port: 8080}]`
	manifests := map[string]string{
		"auth.yaml":   httpBackend.leading(siteNamespace, "tenants", tenantService(t)),
		"routes.yaml": siteRules("exact", exact, rules) + siteRules("wild", `"*.wild.example"`, rules),
		"policy.yaml": authPolicy("exact", "kind: HTTPRoute, name: exact, sectionName: guarded", needsOffice) +
			authPolicy("wild", "kind: HTTPRoute, name: wild, sectionName: guarded", needsOffice),
	}
	maps.Copy(manifests, more)
	s := startSite(t, manifests, "--experimental")
	if more != nil {
		eventually(t, siteTimeout, func() error {
			if s.shards(t) == 0 {
				return errors.New("the table is in no shards")
			}
			return nil
		})
	}
	listeners := s.envoyStats(t, "listener_manager")
	s.write(t, "gateway.yaml", gateway(plain, asking("exact", exact, "tenants"), asking("wild", "*.wild.example", "tenants")))
	for _, host := range []string{exact, wild} {
		at := "http://" + host
		s.answers(t, at+"/open?tenant=deny", http.StatusUnauthorized)
		// Both choices are made in one version of the table: what was divided becomes whole, and its connections drain.
		s.answers(t, at+"/open", http.StatusOK)
		for _, c := range []struct {
			target, says string
			status       int
			backend      string
		}{
			{"/open", "", http.StatusOK, "v1"},
			{"/?tenant=blue", "", http.StatusOK, "v2"},
			{"/", "blue", http.StatusNotFound, ""},
			{"/?tenant=red", "", http.StatusNotFound, ""},
			{"/none?tenant=deny", "", http.StatusUnauthorized, ""},
			{"/guarded", "", http.StatusForbidden, ""},
			{"/?tenant=guarded", "", http.StatusInternalServerError, ""},
			{"/?tenant=guarded", "blue", http.StatusInternalServerError, ""},
			{"/", "guarded", http.StatusForbidden, ""},
			{"/?tenant=guarded", "guarded", http.StatusForbidden, ""},
			{"/?tenant=blue", "guarded", http.StatusForbidden, ""},
		} {
			u, _ := url.Parse(at + c.target)
			call := &clientCall{method: http.MethodGet, url: u, address: s.address, headers: map[string]string{"X-Envoy-Gatehouse-Shard": "none"}}
			if c.says != "" {
				call.headers["X-Tenant"] = c.says
			}
			o, err := call.do(t.Context())
			if err != nil || o.status != c.status || o.answer.Name != c.backend {
				t.Errorf("%s%s of whom it says %q: %v, %d from %q, want %d from %q", host, c.target, c.says, err, o.status, o.answer.Name, c.status, c.backend)
			}
			if o != nil && o.answer.Headers.Get("X-Envoy-Gatehouse-Shard") != "" {
				t.Errorf("%s%s: the backend is told of the shard: %v", host, c.target, o.answer.Headers)
			}
		}
	}
	s.answers(t, "http://home.example/?tenant=deny", http.StatusOK)
	if more != nil {
		return
	}
	if err := sameStats(listeners, s.envoyStats(t, "listener_manager"), "listener_manager.listener_added", "listener_manager.listener_modified"); err != nil {
		t.Error(err)
	}

	s.write(t, "gateway.yaml", gateway(plain, asking("exact", exact, "nonesuch"), asking("wild", "*.wild.example", "tenants")))
	s.answers(t, "http://"+exact+"/open", http.StatusInternalServerError)
	s.answers(t, "http://"+wild+"/open", http.StatusOK)
}
