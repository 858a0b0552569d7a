//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// authHTTPService answers requests to permit with the status that their query asks for. It can be ended,
// and come back at the same port.
type authHTTPService struct {
	port   int
	server *http.Server
}

func (a *authHTTPService) start(t *testing.T) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", a.port))
	if err != nil {
		t.Fatal(err)
	}
	a.port = l.Addr().(*net.TCPAddr).Port
	a.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-User", "alice")
		switch r.URL.Query().Get("auth") {
		case "accept":
			w.WriteHeader(http.StatusAccepted)
		case "deny":
			w.Header().Set("Www-Authenticate", "Custom")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, "log in first")
		case "fail":
			w.WriteHeader(http.StatusBadGateway)
		}
	})}
	server := a.server
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
}

// externalRule is a rule that asks a Service, with more in flow notation behind it.
func externalRule(protocol, service, more string) string {
	port := httpBackend.port
	if protocol == "GRPC" {
		port = authBackend.port
	}
	return fmt.Sprintf("external: {protocol: %s, backendRef: {name: %s, port: %d}%s}", protocol, service, port, more)
}

// TestAuthPolicyExternal has services decide who may pass: over HTTP and gRPC, for a Gateway and for a
// route, for some requests; with one that is gone, and with one that never was.
func TestAuthPolicyExternal(t *testing.T) {
	t.Parallel()
	t.Run("whole table", func(t *testing.T) {
		t.Parallel()
		asksServices(t, startSite)
	})
	t.Run("divided table", func(t *testing.T) {
		t.Parallel()
		asksServices(t, func(t *testing.T, manifests map[string]string, _ ...string) *site {
			t.Helper()
			return startDivided(t, manifests)
		})
	})
}

func asksServices(t *testing.T, start func(t *testing.T, manifests map[string]string, args ...string) *site) {
	t.Helper()
	service := &authHTTPService{}
	service.start(t)
	grpc, err := authBackend.manifest(siteNamespace, "grpc", "by-grpc", "")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, map[string]string{
		"auth.yaml":  httpBackend.leading(siteNamespace, "auth", service.port) + grpc,
		"other.yaml": siteRoute("other", "other.example", "v2"),
	})
	s.serves(t, "other.example", "v2")
	listeners := s.envoyStats(t, "listener_manager")
	onGateway := func(more string) string {
		return authPolicy("service", onGateway, "defaults: {strategy: merge, authorization: {service: {"+more+"}}}")
	}
	s.write(t, "policy.yaml", onGateway(externalRule("HTTP", "auth", ", http: {allowedResponseHeaders: [X-User]}")))
	s.answers(t, "http://home.example/?auth=deny", http.StatusUnauthorized)
	for host, backend := range map[string]string{"home.example": "v1", "other.example": "v2"} {
		denied := s.answers(t, "http://"+host+"/?auth=deny", http.StatusUnauthorized)
		if string(denied.body) != "log in first" || denied.headers.Get("Www-Authenticate") != "Custom" {
			t.Errorf("%s: who is refused is told %q, %v", host, denied.body, denied.headers)
		}
		for _, permission := range []string{"ok", "accept"} {
			u, _ := url.Parse("http://" + host + "/?auth=" + permission)
			o, err := (&clientCall{method: http.MethodGet, url: u, address: s.address, headers: map[string]string{"X-User": "mallory"}}).do(t.Context())
			if err != nil || o.status != http.StatusOK || o.answer.Name != backend || o.answer.Headers.Get("X-User") != "alice" {
				t.Errorf("%s: %s: %v, %+v", host, permission, err, o)
			}
		}
	}
	s.says(t, "AuthPolicy service", "All rules of the policy are in force")
	if out, err := s.run("policies", s.dir, "--effective", "httproute/"+siteNamespace+"/home", "-o", "yaml"); err != nil || !strings.Contains(out, "external:") {
		t.Errorf("what is in force: %v\n%s", err, out)
	}

	// A service that is gone, or fails.
	s.answers(t, "http://home.example/?auth=fail", http.StatusServiceUnavailable)
	if err := service.server.Close(); err != nil {
		t.Fatal(err)
	}
	s.answers(t, "http://home.example/?auth=ok", http.StatusServiceUnavailable)
	s.write(t, "policy.yaml", onGateway(externalRule("HTTP", "auth", ", failureMode: Open")))
	s.answers(t, "http://home.example/?auth=deny", http.StatusOK)
	service.start(t)
	s.answers(t, "http://home.example/?auth=deny", http.StatusUnauthorized)
	s.answers(t, "http://home.example/?auth=fail", http.StatusOK)

	// One without endpoints enforces nothing, and the policy doesn't say that it does.
	auth := httpBackend.leading(siteNamespace, "auth", service.port)
	s.write(t, "auth.yaml", strings.Replace(auth, "endpoints: [{addresses: [127.0.0.1]}]", "endpoints: []", 1)+grpc)
	s.says(t, "AuthPolicy service", "has no endpoint that is ready, so that requests pass without it, by failureMode Open")
	s.answers(t, "http://home.example/?auth=deny", http.StatusOK)
	s.write(t, "policy.yaml", onGateway(externalRule("HTTP", "auth", "")))
	s.says(t, "AuthPolicy service", "has no endpoint that is ready, so that nobody passes whom it would be asked about")
	s.answers(t, "http://home.example/?auth=ok", http.StatusServiceUnavailable)
	s.write(t, "auth.yaml", auth+grpc)
	s.says(t, "AuthPolicy service", "All rules of the policy are in force")
	s.answers(t, "http://home.example/?auth=ok", http.StatusOK)

	// Some requests only.
	s.write(t, "policy.yaml", onGateway("when: request.path.startsWith('/admin'), "+externalRule("HTTP", "auth", "")))
	s.answers(t, "http://home.example/?auth=deny", http.StatusOK)
	s.answers(t, "http://home.example/admin?auth=deny", http.StatusUnauthorized)
	s.answers(t, "http://home.example/admin?auth=accept", http.StatusOK)

	// A further service of a route, over gRPC: both are asked.
	s.write(t, "home-policy.yaml", authPolicy("home", onHome, "defaults: {strategy: merge, authorization: {grpc: {"+externalRule("GRPC", "grpc", "")+"}}}"))
	s.answers(t, "http://home.example/?auth=fail", http.StatusServiceUnavailable)
	if denied := s.answers(t, "http://home.example/?auth=deny", http.StatusUnauthorized); string(denied.body) != "by-grpc says no" {
		t.Errorf("the service of the route says %q", denied.body)
	}
	if o := s.answers(t, "http://home.example/", http.StatusOK); o.answer.Headers.Get("X-Auth-By") != "by-grpc" {
		t.Errorf("the backend is told %v", o.answer.Headers)
	}
	s.answers(t, "http://other.example/?auth=fail", http.StatusOK)
	s.remove(t, "home-policy.yaml")
	s.answers(t, "http://home.example/?auth=fail", http.StatusOK)

	// A service that does not exist is no failure of it.
	s.write(t, "policy.yaml", onGateway(externalRule("HTTP", "nonesuch", ", failureMode: Open")))
	s.answers(t, "http://home.example/", http.StatusForbidden)
	s.says(t, "AuthPolicy service", "external.backendRef: Service "+siteNamespace+"/nonesuch does not exist")
	s.write(t, "policy.yaml", onGateway(externalRule("HTTP", "auth", "")))
	s.answers(t, "http://home.example/?auth=accept", http.StatusOK)
	s.remove(t, "auth.yaml")
	s.answers(t, "http://home.example/?auth=accept", http.StatusForbidden)

	if err := sameStats(listeners, s.envoyStats(t, "listener_manager"), "listener_manager.listener_added", "listener_manager.listener_modified",
		"listener_manager.listener_removed", "listener_manager.listener_in_place_updated"); err != nil {
		t.Error(err)
	}
}
