package envoy

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// TestEnvoyPaths protects what is asked of doubled and escaped slashes: which route a
// request takes, what the backend gets, and where a redirect leads, which must never be
// another host.
func TestEnvoyPaths(t *testing.T) {
	type want struct {
		status int
		path   string // as the backend gets it, or as Location says it
	}
	targets := []string{"//admin", "/%2fadmin", "/x/..%2Fadmin", "/x%5c..%5cadmin", "/%2fother.example/x", "/%5C%5Cother.example", "/a?b=//%2f"}
	for _, c := range []struct {
		name  string
		paths ir.Paths
		want  []want
	}{
		{"default", ir.Paths{}, []want{
			{204, ""}, {400, ""}, {400, ""}, {400, ""}, {400, ""}, {400, ""}, {200, "/a?b=//%2f"},
		}},
		{"redirect", ir.Paths{Escaped: ir.RedirectEscaped}, []want{
			{204, ""}, {307, "/admin"}, {307, "/admin"}, {307, "/admin"}, {307, "/other.example/x"}, {307, "/other.example"}, {200, "/a?b=//%2f"},
		}},
		{"keep", ir.Paths{Escaped: ir.KeepEscaped, KeepDoubled: true}, []want{
			{200, "//admin"}, {200, "/%2fadmin"}, {200, "/x/..%2Fadmin"}, {200, "/x%5c..%5cadmin"}, {200, "/%2fother.example/x"}, {200, "/%5C%5Cother.example"}, {200, "/a?b=//%2f"},
		}},
		{"keep doubled", ir.Paths{KeepDoubled: true}, []want{
			{200, "//admin"}, {400, ""}, {400, ""}, {400, ""}, {400, ""}, {400, ""}, {200, "/a?b=//%2f"},
		}},
		// Location: //other.example/x would be another host.
		{"redirect and keep doubled", ir.Paths{KeepDoubled: true, Escaped: ir.RedirectEscaped}, []want{
			{204, ""}, {307, "/admin"}, {307, "/admin"}, {307, "/admin"}, {307, "/other.example/x"}, {307, "/other.example"}, {200, "/a?b=//%2f"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBackend(t, "echo", ir.HTTP1, nil)
			guarded := &ir.Rule{Match: prefix("/admin"), Status: 204}
			guarded.Source.Rule = 1
			s := plain(rulesOn("*", guarded, &ir.Rule{Match: prefix("/"), Backends: to(b)}), b)
			s.listeners[0].Client.Paths = c.paths
			r := s.start(t)
			for i, target := range targets {
				a := r.raw(t, "127.0.0.9", "GET "+target+" HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
				if a == nil {
					t.Fatalf("%s: no answer", target)
				}
				if got := (want{a.Status, a.Seen.Path + a.Header.Get("Location")}); got != c.want[i] {
					t.Errorf("%s: %v, want %v", target, got, c.want[i])
				}
			}
		})
	}
}

// TestEnvoyHostsBySpelling protects that a host has its own rules however a client spells it,
// and not those of a wildcard beside it, which somebody else may guard.
func TestEnvoyHostsBySpelling(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	hosts := append(rulesOn("a.example", &ir.Rule{Match: prefix("/"), Status: 204}), rulesOn("*", &ir.Rule{Match: prefix("/"), Backends: to(b)})...)
	r := plain(hosts, b).start(t)
	for _, host := range []string{"a.example", "A.Example", "a.example:80", "a.example:8080", "a.example:", "a.example.", "a.example.:80", "A.EXAMPLE."} {
		a := r.raw(t, "127.0.0.9", "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
		if a == nil || a.Status != 204 {
			t.Errorf("Host: %s: %+v", host, a)
		}
	}
	a := r.raw(t, "127.0.0.9", "GET http://a.example./ HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n")
	if a == nil || a.Status != 204 {
		t.Errorf("the absolute form: %+v", a)
	}
}
