package envoy

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// Those who don't pass are told what the policy says, and nobody else is.
func TestEnvoyAccessResponses(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	refusing := newBackend(t, "refusing", ir.HTTP1, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("the backend's"))
	}))
	keys := []ir.APIKeys{apiKeys("k", map[string]string{"alice": "secret"})}
	login := &ir.AccessAnswer{Status: 302, Headers: []ir.Header{{Name: "location", Value: "https://id.example/?a=%20"}}}
	page := &ir.AccessAnswer{Status: 404, Body: "<p>\"%REQ(X-A)%\"]]\n", Headers: []ir.Header{{Name: "content-type", Value: "text/html"}, {Name: "x-why", Value: "%REQ(X-A)%"}}}
	never, when := ir.AccessCondition{Name: "never", Never: true}, ir.AccessCondition{Name: "when", Never: true, When: "request.method == 'POST'"}
	of := func(path string, a ir.Access, to []ir.WeightedBackend) *ir.Rule {
		return &ir.Rule{Match: prefix(path), Filters: ir.Filters{Access: &a}, Backends: to}
	}
	r := plain(rulesOn("a.example",
		of("/login", ir.Access{Authenticated: true, Keys: keys, Unauthenticated: login}, to(b)),
		of("/hidden", ir.Access{Authenticated: true, Keys: keys, Unauthenticated: page, Forbidden: page, Conditions: []ir.AccessCondition{never}}, to(b)),
		of("/teapot", ir.Access{Authenticated: true, Keys: keys, Unauthenticated: &ir.AccessAnswer{Status: 401, Body: "no"}}, to(b)),
		of("/conditions", ir.Access{Forbidden: page, Conditions: []ir.AccessCondition{when}}, to(refusing)),
		of("/far", ir.Access{Forbidden: page, Conditions: []ir.AccessCondition{{Name: "far", Allow: slices.Repeat([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, maxInList+1)}}}, to(b)),
		of("/moved", ir.Access{Forbidden: login, Conditions: []ir.AccessCondition{never}}, to(b)),
	), b, refusing).start(t)
	key := http.Header{"X-Api-Key": {"secret"}, "X-A": {"request"}}
	for _, c := range []struct {
		method, path string
		header       http.Header
		want         int
		body         string
		headers      map[string]string
	}{
		{"GET", "/login", nil, 302, "", map[string]string{"Location": "https://id.example/?a=%20", "Www-Authenticate": ""}},
		{"GET", "/login", key, 200, "", map[string]string{"Location": ""}},
		{"GET", "/hidden", nil, 404, page.Body, map[string]string{"Content-Type": "text/html", "X-Why": "%REQ(X-A)%"}},
		{"GET", "/hidden", key, 404, page.Body, map[string]string{"Content-Type": "text/html", "X-Why": "%REQ(X-A)%"}},
		{"HEAD", "/hidden", key, 404, "", map[string]string{"Content-Type": "text/html"}},
		{"GET", "/teapot", nil, 401, "no", map[string]string{"Content-Type": "text/plain", "Www-Authenticate": "ApiKey"}},
		{"GET", "/conditions", nil, 403, "the backend's", map[string]string{"X-Why": ""}},
		{"POST", "/conditions", nil, 404, page.Body, map[string]string{"X-Why": "%REQ(X-A)%"}},
		{"GET", "/far", nil, 404, page.Body, map[string]string{"X-Why": "%REQ(X-A)%"}},
		{"GET", "/moved", nil, 302, "", map[string]string{"Location": "https://id.example/?a=%20"}},
	} {
		a := r.do(t, c.method, "http://a.example"+c.path, c.header, nil)
		if a.Status != c.want || c.want != 200 && a.Body != c.body {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, a.Status, a.Body, c.want, c.body)
		}
		for name, want := range c.headers {
			if got := strings.Join(a.Header.Values(name), " "); got != want {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.path, name, got, want)
			}
		}
	}
	for path, code := range map[string]string{"/hidden": "16", "/moved": "7"} {
		a := r.do(t, "POST", "http://a.example"+path, http.Header{"Content-Type": {"application/grpc"}}, nil)
		if a.Status != 200 || a.Header.Get("Grpc-Status") != code || a.Header.Get("X-Why")+a.Header.Get("Location") != "" {
			t.Errorf("gRPC %s: %d, %v", path, a.Status, a.Header)
		}
	}
}
