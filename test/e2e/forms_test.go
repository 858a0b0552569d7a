//go:build linux

package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// TestRequestForms protects routes from being gone around: in whatever form a path
// or a host is written, what the route is chosen by is what the backend gets.
func TestRequestForms(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	// v2 is behind /admin, v1 behind everything else.
	s := edgeSite(t, map[string]string{"paths.yaml": siteRules("paths", "paths.example",
		"- {matches: [{path: {type: PathPrefix, value: /admin}}], backendRefs: [{name: v2, port: 8080}]}\n- backendRefs: [{name: v1, port: 8080}]")})
	s.serves(t, "paths.example", "v1")
	send := func(t *testing.T, request string, status int, backend, path string) {
		t.Helper()
		a := s.raw(t, request)
		var seen echo.Answer
		_ = json.Unmarshal([]byte(a.body), &seen)
		if a.status != status || seen.Name != backend || seen.Path != path {
			t.Errorf("%q: %d by %q, which got %q; want %d by %q and %q", request, a.status, seen.Name, seen.Path, status, backend, path)
		}
	}
	for _, c := range []struct {
		target  string
		status  int
		backend string
		path    string
	}{
		{"/admin", 200, "v2", "/admin"},
		// Dot segments, in every writing, are resolved first.
		{"/public/../admin", 200, "v2", "/admin"},
		{"/public/%2e%2e/admin", 200, "v2", "/admin"},
		{"/public/%2E./admin", 200, "v2", "/admin"},
		{"/../../admin", 200, "v2", "/admin"},
		{"/./admin", 200, "v2", "/admin"},
		{"/public/..;/admin", 200, "v2", "/admin"},
		{"/..", 200, "v1", "/"},
		// Backslashes are slashes.
		{`/public\..\admin`, 200, "v2", "/admin"},
		{`/public/..\admin`, 200, "v2", "/admin"},
		// Letters need no escapes.
		{"/%61dmin", 200, "v2", "/admin"},
		{"/ADMIN", 200, "v1", "/ADMIN"},
		{"/admin;x=y", 200, "v1", "/admin;x=y"},
		{"/a%20b%C3%A4", 200, "v1", "/a%20b%C3%A4"},
		// Doubled slashes are one, before and after dot segments.
		{"//admin", 200, "v2", "/admin"},
		{"///admin//x", 200, "v2", "/admin/x"},
		{"/public/..//admin", 200, "v2", "/admin"},
		{"/public//../admin", 200, "v1", "/public/admin"},
		{`/\admin`, 200, "v2", "/admin"},
		{"/x?y=//admin%2fx", 200, "v1", "/x"},
		// Escaped ones nobody reads: what they stand for is each backend's own matter.
		{"/%2fadmin", 400, "", ""},
		{"/%2Fadmin", 400, "", ""},
		{"/%5cadmin", 400, "", ""},
		{"/%5Cadmin", 400, "", ""},
		{"/admin%2fx", 400, "", ""},
		{"/public/..%2fadmin", 400, "", ""},
		{"/public/..%5cadmin", 400, "", ""},
		{"/x%5c..%5cadmin", 400, "", ""},
		{"/x/%2e%2e%2fadmin", 400, "", ""},
		// An escaped percent sign is one: whoever decodes twice decodes what nobody has sent.
		{"/x%252fadmin", 200, "v1", "/x%252fadmin"},
		{"/x?y=/../admin", 200, "v1", "/x"},
		// What is no path.
		{"/admin%00", 400, "", ""},
		{"/admin\x00", 400, "", ""},
		{"/%zz", 400, "", ""},
		{"/x#/admin", 400, "", ""},
		{"/\xc3\xa4", 400, "", ""},
		{"admin", 400, "", ""},
		{"*", 400, "", ""},
		// A whole URL decides instead of the Host header.
		{"http://paths.example/admin", 200, "v2", "/admin"},
		{"http://paths.example:80/admin", 200, "v2", "/admin"},
		{"http://other.example/admin", 404, "", ""},
		{"https://paths.example/admin", 403, "", ""},
		{"ftp://paths.example/admin", 400, "", ""},
	} {
		send(t, "GET "+c.target+" HTTP/1.1\r\nHost: paths.example\r\nConnection: close\r\n\r\n", c.status, c.backend, c.path)
	}
	const get, host = "GET /admin HTTP/1.1\r\n", "Host: paths.example\r\n"
	for _, c := range []struct {
		request string
		status  int
	}{
		{get + "Host: PATHS.example:9\r\n\r\n", 200},
		{get + "Host: paths.example@other.example\r\n\r\n", 400},
		{get + "Host: other.example/paths.example\r\n\r\n", 400},
		{"GET /admin HTTP/1.0\r\n" + host + "\r\n", http.StatusUpgradeRequired},
		{"CONNECT paths.example:80 HTTP/1.1\r\nHost: paths.example:80\r\n\r\n", 404},
		{"XYZ /admin HTTP/1.1\r\n" + host + "\r\n", 400},
		{get + host + "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n", 403},
		{get + host + "Connection: Upgrade\r\nUpgrade: websocket, tcp\r\n\r\n", 403},
		{get + host + "Expect: nonsense\r\nContent-Length: 1\r\n\r\na", http.StatusExpectationFailed},
		{get + host + "Connection: X-Forwarded-For\r\n\r\n", 400},
	} {
		backend, path := "", ""
		if c.status == http.StatusOK {
			backend, path = "v2", "/admin"
		}
		send(t, c.request, c.status, backend, path)
	}
	for _, c := range []struct{ protocol, answer string }{{"", "404"}, {"tcp", "closed"}, {"connect-udp", "closed"}, {"websocket", "closed"}} {
		f := s.framer(t)
		headers := []string{":method", "CONNECT", ":authority", "paths.example"}
		if c.protocol != "" {
			headers = append(headers, ":scheme", "http", ":path", "/admin", ":protocol", c.protocol)
		}
		if err := f.open(false, headers...); err != nil {
			t.Fatal(err)
		}
		if got := f.answer(); got != c.answer {
			t.Errorf("CONNECT %q over HTTP/2: %s, want %s", c.protocol, got, c.answer)
		}
	}
}
