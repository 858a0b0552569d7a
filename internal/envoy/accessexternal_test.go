package envoy

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// newService is a service that answers with the status that the request's query asks for, and tells who
// the client is.
func newService(t *testing.T, name string) *backend {
	t.Helper()
	s := newBackend(t, name, ir.HTTP1, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-User", name)
		for _, forged := range []string{"Host", "X-Client", "X_client", "X-Gatehouse-Hop", "X-Gatehouse-Other", "X-Envoy-Retry-On", "Connection"} {
			if r.URL.Query().Has("forge") {
				h.Set(forged, "forged")
			}
		}
		if r.URL.Query().Has("early") {
			w.WriteHeader(http.StatusEarlyHints)
		}
		if r.URL.Query().Has("slow") {
			<-r.Context().Done() // nobody waits any longer
			return
		}
		if status, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil {
			w.WriteHeader(status)
		}
		if r.URL.Query().Get("status") != "204" {
			_, _ = fmt.Fprint(w, "said by ", name)
		}
	}))
	s.ir.Use = ir.UseAuth
	s.eps.Backend = s.ir.Key()
	return s
}

// taken is how many requests have come since it was asked last.
func (b *backend) taken() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := len(b.seen)
	b.seen = nil
	return n
}

// What a service permits passes, by whichever status of 2xx, and nothing else does.
func TestEnvoyAccessExternal(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	service, second := newService(t, "first"), newService(t, "second")
	dead := newService(t, "dead")
	dead.eps.Endpoints[0].Port = 1
	by := func(s *backend, more ...func(*ir.AccessCondition)) ir.AccessCondition {
		c := ir.AccessCondition{Name: "e", External: &ir.External{Auth: ir.Auth{Backend: s.ir.Key(), Timeout: 300 * time.Millisecond}}}
		for _, change := range more {
			change(&c)
		}
		return c
	}
	open := func(c *ir.AccessCondition) { c.External.Open = true }
	when := func(text string) func(*ir.AccessCondition) { return func(c *ir.AccessCondition) { c.When = text } }
	named := func(name string) func(*ir.AccessCondition) { return func(c *ir.AccessCondition) { c.Name = name } }
	guarded := func(path string, conditions ...ir.AccessCondition) *ir.Rule {
		return &ir.Rule{Match: prefix(path), Filters: ir.Filters{Access: &ir.Access{Conditions: conditions}}, Backends: to(b)}
	}
	keys := guarded("/keys", by(service))
	keys.Filters.Access.Authenticated, keys.Filters.Access.Hidden = true, []string{"x-client"}
	keys.Filters.Access.Keys = []ir.APIKeys{apiKeys("k", map[string]string{"alice": "secret"})}
	keys.Filters.Access.Forbidden = &ir.AccessAnswer{Status: 404, Body: "not the service's"}
	s := plain(rulesOn("a.example",
		guarded("/closed", by(service)), guarded("/open", by(service, open)), keys,
		guarded("/dead", by(dead)), guarded("/dead-open", by(dead, open)),
		guarded("/when", by(service, when("request.method == 'POST'"))),
		guarded("/fails", by(service, when("request.headers['x-none'] == 'a'"))),
		guarded("/met", by(service, func(c *ir.AccessCondition) { c.Methods = []string{"GET"} })),
		guarded("/both", by(service), by(second, named("f"))),
		guarded("/mixed", by(service, when("request.method == 'POST'")), by(second, named("f"), when("request.method == 'GET'"))),
		guarded("/never", by(service, named("n")), ir.AccessCondition{Name: "z", Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}),
		guarded("/listed", by(service, func(c *ir.AccessCondition) { c.External.ResponseHeaders = []string{"x-user"} })),
		guarded("/prefixed", by(service, func(c *ir.AccessCondition) { c.External.PathPrefix = "/check" })),
		guarded("/body", by(service, func(c *ir.AccessCondition) { c.External.MaxBody = 4 })),
	), b)
	for _, a := range []*backend{service, second, dead} {
		s.backends, s.endpoints = append(s.backends, a.ir), append(s.endpoints, a.eps)
	}
	r := s.start(t)
	type counts struct{ first, second int }
	for _, c := range []struct {
		method, path string
		header       http.Header
		want         int
		body         string // of the service, or "" for any other answer
		asked        counts
	}{
		{"GET", "/closed", nil, 200, "", counts{1, 0}},
		{"GET", "/closed?status=201", nil, 200, "", counts{1, 0}}, {"GET", "/closed?status=202", nil, 200, "", counts{1, 0}},
		{"GET", "/closed?status=204", nil, 200, "", counts{1, 0}}, {"GET", "/closed?status=299", nil, 200, "", counts{1, 0}},
		{"HEAD", "/closed?status=202", nil, 200, "", counts{1, 0}}, {"GET", "/closed?early&status=202", nil, 200, "", counts{1, 0}},
		{"GET", "/closed?early&status=403", nil, 403, "said by first", counts{1, 0}},
		{"GET", "/closed?status=300", nil, 300, "said by first", counts{1, 0}}, {"GET", "/closed?status=302", nil, 302, "said by first", counts{1, 0}},
		{"GET", "/closed?status=401", nil, 401, "said by first", counts{1, 0}}, {"GET", "/closed?status=403", nil, 403, "said by first", counts{1, 0}},
		{"GET", "/closed?status=500", nil, 503, "", counts{1, 0}}, {"GET", "/closed?slow", nil, 503, "", counts{1, 0}},
		{"GET", "/open?status=202", nil, 200, "", counts{1, 0}}, {"GET", "/open?status=401", nil, 401, "said by first", counts{1, 0}},
		{"GET", "/open?status=503", nil, 200, "", counts{1, 0}}, {"GET", "/open?slow", nil, 200, "", counts{1, 0}},
		{"GET", "/dead", nil, 503, "", counts{}}, {"GET", "/dead-open", nil, 200, "", counts{}},
		{"GET", "/when?status=401", nil, 200, "", counts{}}, {"POST", "/when?status=401", nil, 401, "said by first", counts{1, 0}},
		{"GET", "/fails?status=401", nil, 401, "said by first", counts{1, 0}},
		{"GET", "/fails?status=401", http.Header{"X-None": {"a"}}, 401, "said by first", counts{1, 0}},
		{"GET", "/fails?status=401", http.Header{"X-None": {"b"}}, 200, "", counts{}},
		{"POST", "/met", nil, 403, "", counts{}}, {"GET", "/met?status=401", nil, 401, "said by first", counts{1, 0}}, {"GET", "/met", nil, 200, "", counts{1, 0}},
		{"GET", "/both", nil, 200, "", counts{1, 1}}, {"GET", "/both?status=403", nil, 403, "said by first", counts{1, 0}},
		{"POST", "/mixed?status=403", nil, 403, "said by first", counts{1, 0}}, {"GET", "/mixed?status=403", nil, 403, "said by second", counts{0, 1}},
		{"PUT", "/mixed?status=403", nil, 200, "", counts{}},
		{"GET", "/never", nil, 403, "", counts{}},
		{"GET", "/keys", nil, 401, "", counts{}},
		{"GET", "/keys", http.Header{"X-Api-Key": {"secret"}}, 200, "", counts{1, 0}},
		{"GET", "/keys?status=403", http.Header{"X-Api-Key": {"secret"}}, 403, "said by first", counts{1, 0}},
		{"GET", "/prefixed?status=418", nil, 418, "said by first", counts{1, 0}},
		{"POST", "/body", nil, 200, "", counts{1, 0}},
	} {
		a := r.do(t, c.method, "http://a.example"+c.path, c.header, nil)
		if a.Status != c.want || c.body != "" && a.Body != c.body {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, a.Status, a.Body, c.want, c.body)
		}
		if got := (counts{service.taken(), second.taken()}); got != c.asked {
			t.Errorf("%s %s: the services were asked %v times, want %v", c.method, c.path, got, c.asked)
		}
	}
	if a := r.do(t, "POST", "http://a.example/body", nil, []byte("12345")); a.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("a long body: %d", a.Status)
	}
	// Who the client is, and where the request goes, is not the service's to say.
	a := r.do(t, "GET", "http://a.example/keys?forge", http.Header{"X-Api-Key": {"secret"}, "X-User": {"mallory"}}, nil)
	if h := a.Seen.Header; told(h) != "alice" || a.Seen.Host != "a.example" || h.Get("X-User") != "first" ||
		h.Get("X-Gatehouse-Other") != "" || h.Get("X-Gatehouse-Hop") == "forged" || h.Get("X-Envoy-Retry-On") != "" {
		t.Errorf("%d; the backend was sent to %s: %v", a.Status, a.Seen.Host, h)
	}
	if a := r.do(t, "GET", "http://a.example/listed?forge", nil, nil); a.Seen.Header.Get("X-User") != "first" || told(a.Seen.Header) != "" {
		t.Errorf("%d; of listed headers the backend has %v", a.Status, a.Seen.Header)
	}
}

// A level says something of every service that one around it has asked.
func TestEnvoyAccessExternalLevels(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	asks := func(name string) (*backend, ir.AccessCondition) {
		s := newService(t, name)
		return s, ir.AccessCondition{Name: name, When: "request.method == 'GET'", External: &ir.External{Auth: ir.Auth{Backend: s.ir.Key(), Timeout: time.Second}}}
	}
	outer, outside := asks("outer")
	inner, inside := asks("inner")
	s := plain(append(rulesOn("a.example",
		&ir.Rule{Match: prefix("/inner"), Filters: ir.Filters{Access: &ir.Access{Conditions: []ir.AccessCondition{inside}}}, Backends: to(b)},
		&ir.Rule{Match: prefix("/both"), Filters: ir.Filters{Access: &ir.Access{Conditions: []ir.AccessCondition{inside, outside}}}, Backends: to(b)},
		&ir.Rule{Match: prefix("/none"), Filters: ir.Filters{Access: &ir.Access{}}, Backends: to(b)},
		&ir.Rule{Match: prefix("/"), Backends: to(b)},
	), rulesOn("b.example", &ir.Rule{Match: prefix("/"), Backends: to(b)})...), b)
	s.listeners[0].Filters = &ir.Filters{Access: &ir.Access{Conditions: []ir.AccessCondition{outside}}}
	for _, a := range []*backend{outer, inner} {
		s.backends, s.endpoints = append(s.backends, a.ir), append(s.endpoints, a.eps)
	}
	r := s.start(t)
	for url, want := range map[string][2]int{
		"http://a.example/": {1, 0}, "http://b.example/": {1, 0}, "http://a.example/inner": {0, 1}, "http://a.example/both": {1, 1}, "http://a.example/none": {0, 0},
	} {
		if a := r.get(t, url); a.Status != http.StatusOK {
			t.Errorf("%s: %d", url, a.Status)
		}
		if got := [2]int{outer.taken(), inner.taken()}; got != want {
			t.Errorf("%s: the services were asked %v times, want %v", url, got, want)
		}
	}
}

// What only a service may say never comes from a client, and its cookies go to the client alone.
func TestEnvoyExternalHeaders(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Add("Set-Cookie", "own=1") }))
	service := newBackend(t, "auth", ir.HTTP1, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("user") {
			w.Header().Set("X-Auth-User", "alice")
		}
		w.Header().Add("Set-Cookie", "a=1; Path=/")
		w.Header().Add("Set-Cookie", "b=2")
	}))
	service.ir.Use = ir.UseAuth
	service.eps.Backend = service.ir.Key()
	auth := func(names ...string) ir.Auth {
		return ir.Auth{Backend: service.ir.Key(), Timeout: 5 * time.Second, ResponseHeaders: names}
	}
	policy := func(path string, a ir.Auth) *ir.Rule {
		return &ir.Rule{Match: prefix(path), Backends: to(b), Filters: ir.Filters{Access: &ir.Access{
			Hidden: a.OnlyService(), Conditions: []ir.AccessCondition{{Name: "e", External: &ir.External{Auth: a}}},
		}}}
	}
	filter := func(path string, a ir.Auth) *ir.Rule {
		return &ir.Rule{Match: prefix(path), Backends: to(b), Filters: ir.Filters{Auth: &a}}
	}
	own := auth("x-auth-user")
	own.RequestHeaders = []string{"x-session"}
	repeated := filter("/repeated", auth("x-auth-user"))
	repeated.Retry, repeated.Timeouts = &ir.Retry{Attempts: 1}, &ir.Timeouts{Backend: new(time.Second)}
	s := plain(rulesOn("a.example", repeated,
		policy("/policy", auth("x-auth-user")), policy("/named", auth("x-auth-user", "set-cookie")), policy("/all", auth()),
		filter("/filter", auth("x-auth-user")), filter("/filternamed", auth("x-auth-user", "set-cookie")), filter("/filterall", auth()), filter("/own", own),
	), b)
	s.backends, s.endpoints = append(s.backends, service.ir), append(s.endpoints, service.eps)
	r := s.start(t)
	for _, path := range []string{"/policy", "/named", "/all", "/filter", "/filternamed", "/filterall", "/own", "/repeated"} {
		for _, query := range []string{"", "?user"} {
			b.taken()
			a := r.do(t, "GET", "http://a.example"+path+query, http.Header{"X-Auth-User": {"mallory"}, "X_auth_user": {"mallory"}, "X_Auth-User": {"mallory"}, "Cookie": {"c=3"}}, nil)
			if got := a.Header["Set-Cookie"]; a.Status != 200 || len(got) != 3 {
				t.Errorf("%s%s: %d, the client gets %q", path, query, a.Status, got)
			}
			b.mu.Lock()
			h := b.seen[0].Header
			b.mu.Unlock()
			var told []string
			for name, values := range h {
				if strings.EqualFold(strings.ReplaceAll(name, "_", "-"), "x-auth-user") {
					told = append(told, values...)
				}
			}
			want := ""
			if query != "" {
				want = "alice"
			}
			if got := strings.Join(told, " "); got != want && !strings.HasSuffix(path, "all") {
				t.Errorf("%s%s: the backend is told %q", path, query, got)
			}
			if len(h["Set-Cookie"]) > 0 || h.Get("Cookie") != "c=3" {
				t.Errorf("%s%s: the backend has %q and %q", path, query, h["Set-Cookie"], h["Cookie"])
			}
		}
	}
}
