//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// header asks until an answer has the header so often as it is named, with these values.
func (s *site) header(t *testing.T, target, name string, want ...string) {
	t.Helper()
	if got := s.answer(t, target, "", nil).headers.Values(name); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%s: %s is %q, want %q", target, name, got, want)
	}
}

// testAnswerHeaders protects headers of whole hosts, also in answers of the Gateway itself.
func testAnswerHeaders(t *testing.T, s *site) {
	s.write(t, "home.yaml", siteRules("home", "home.example", "- {matches: [{path: {value: /}}], backendRefs: [{name: v1, port: 8080}]}")+
		siteRules("some", "some.example", "- {matches: [{path: {value: /some}}], backendRefs: [{name: v1, port: 8080}]}\n- {matches: [{path: {value: /none}}], backendRefs: [{name: nonesuch, port: 8080}]}"))
	s.answers(t, "http://some.example/some", http.StatusOK)
	s.set(t, "traffic.yaml", onGateway, "response: {headers: {set: [{name: X-Site, value: 100% ours}], setIfAbsent: [{name: Cache-Control, value: no-store}], add: [{name: X-Also, value: here}], remove: [X-Back]}}")
	for _, target := range []string{homeURL, "http://some.example/some", "http://some.example/none", "http://some.example/other", "http://nobody.example/"} {
		s.header(t, target, "X-Site", "100% ours")
		s.header(t, target, "X-Also", "here")
		s.header(t, target, "Cache-Control", "no-store")
	}
	own := homeURL + "?header=" + url.QueryEscape("X-Back:no") + "&header=" + url.QueryEscape("Cache-Control:public") + "&header=" + url.QueryEscape("X-Site:another") + "&header=" + url.QueryEscape("X-Also:there")
	s.header(t, own, "X-Back")
	s.header(t, own, "Cache-Control", "public")
	s.header(t, own, "X-Site", "100% ours")
	s.header(t, own, "X-Also", "there", "here")
	s.set(t, "own.yaml", onHome, "response: {headers: {disabled: true}}")
	s.header(t, own, "X-Back", "no")
	s.header(t, own, "X-Site", "another")
	s.header(t, "http://some.example/some", "X-Site", "100% ours")
	s.remove(t, "own.yaml")
}

const hsts = "Strict-Transport-Security"

// testStrictTransportSecurity protects that HSTS is said over HTTPS, once, and never over HTTP.
func testStrictTransportSecurity(t *testing.T, s *site) {
	s.set(t, "traffic.yaml", onGateway, "response: {strictTransportSecurity: {}}")
	s.header(t, "https://home.example/", hsts, "max-age=31536000")
	s.header(t, "https://home.example/?header="+hsts+":max-age=1", hsts, "max-age=31536000")
	s.header(t, homeURL, hsts)
	s.set(t, "own.yaml", onHome, "response: {strictTransportSecurity: {maxAge: 17520h, includeSubDomains: true, preload: true}}")
	s.header(t, "https://home.example/", hsts, "max-age=63072000; includeSubDomains; preload")
	s.header(t, homeURL, hsts)
	s.set(t, "own.yaml", onHome, "response: {strictTransportSecurity: {disabled: true}}")
	s.header(t, "https://home.example/", hsts)
	s.remove(t, "own.yaml")
}

// testSecurityHeaders protects the preset, and that a backend has the last word.
func testSecurityHeaders(t *testing.T, s *site) {
	s.set(t, "traffic.yaml", onGateway, "response: {securityHeaders: {}}")
	s.header(t, homeURL, "X-Content-Type-Options", "nosniff")
	s.header(t, homeURL, "X-Frame-Options", "SAMEORIGIN")
	s.header(t, homeURL, "Referrer-Policy", "strict-origin-when-cross-origin")
	s.header(t, homeURL+"?header=X-Frame-Options:DENY", "X-Frame-Options", "DENY")
	s.set(t, "traffic.yaml", onGateway, "response: {securityHeaders: {frameOptions: Any, referrerPolicy: no-referrer, contentSecurityPolicy: \"default-src 'self'\", permissionsPolicy: 'camera=()'}}")
	s.header(t, homeURL, "X-Frame-Options")
	s.header(t, homeURL, "Referrer-Policy", "no-referrer")
	s.header(t, homeURL, "Content-Security-Policy", "default-src 'self'")
	s.header(t, homeURL, "Permissions-Policy", "camera=()")
}

// testErrorPages protects pages for errors of backends and of the Gateway, and that they come and go with their
// ConfigMap.
func testErrorPages(t *testing.T, s *site) {
	s.write(t, "some.yaml", siteRules("some", "some.example", "- {matches: [{path: {value: /some}}], backendRefs: [{name: v1, port: 8080}]}\n- {matches: [{path: {value: /none}}], backendRefs: [{name: nonesuch, port: 8080}]}"))
	s.answers(t, "http://some.example/some", http.StatusOK)
	pages := func(text string) {
		t.Helper()
		s.write(t, "pages.yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: pages, namespace: %s}\ndata: {body: %q}\n", siteNamespace, text))
	}
	// shows waits for a page, for a change of the ConfigMap has no status of its own.
	shows := func(target string, status int, page string) (o *outcome) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			o = s.answer(t, target, "", nil)
			if got := string(o.body); o.status != status || got != page && page != "" {
				return fmt.Errorf("%s: %d %q, want %d %q", target, o.status, clipped(o.body), status, page)
			}
			return nil
		})
		return o
	}
	pages("<h1>Sorry</h1>")
	policy := s.set(t, "traffic.yaml", onGateway, `response: {strictTransportSecurity: {}, headers: {set: [{name: X-Site, value: ours}]}, errorPages: {pages: [
      {statuses: ["418"], body: "100% teapot", contentType: text/plain}, {statuses: [4xx], from: Gateway, body: none of ours}, {statuses: [5xx, "404"], configMapRef: {name: pages}}]}}`)
	if o := shows(homeURL+"?status=418", 418, "100% teapot"); o.headers.Get("Content-Type") != "text/plain" || strings.Join(o.headers.Values("X-Site"), "|") != "ours" {
		t.Errorf("the page has %v", o.headers)
	}
	if o := shows("https://home.example/?status=503", 503, "<h1>Sorry</h1>"); o.headers.Get("Content-Type") != "text/html; charset=utf-8" || strings.Join(o.headers.Values(hsts), "|") != "max-age=31536000" {
		t.Errorf("the page has %v", o.headers)
	}
	shows(homeURL+"?status=404", 404, "<h1>Sorry</h1>")
	shows("http://some.example/none", 500, "<h1>Sorry</h1>")
	shows("http://some.example/other", 404, "none of ours")
	shows("http://nobody.example/", 404, "none of ours")
	if o := shows(homeURL+"?status=401&header=WWW-Authenticate:Basic", 401, ""); o.headers.Get("WWW-Authenticate") == "" {
		t.Error("a page has taken away what a browser asks for a password by")
	}
	shows(homeURL, 200, "")
	pages("another")
	shows(homeURL+"?status=503", 503, "another")
	s.remove(t, "pages.yaml")
	s.says(t, "TrafficPolicy "+policy, "names ConfigMap "+siteNamespace+"/pages, which does not exist")
	eventually(t, siteTimeout, func() error {
		if o := s.answer(t, homeURL+"?status=503", "", nil); o.status != 503 || o.answer.Name != "v1" {
			return fmt.Errorf("without its ConfigMap: %d %q", o.status, clipped(o.body))
		}
		return nil
	})
	pages("back")
	shows(homeURL+"?status=503", 503, "back")
	s.set(t, "own.yaml", onHome, "response: {errorPages: {disabled: true}}")
	if o := s.answer(t, homeURL+"?status=503", "", nil); o.answer.Name != "v1" {
		t.Errorf("switched off: %q", clipped(o.body))
	}
	s.remove(t, "own.yaml")
}

// TestAskedErrorPages protects that backends are asked for pages with what there is to know of an error, and that an error stays
// as it is where no page is to be had.
func TestAskedErrorPages(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	s.farm(t)
	pages := func(list string) {
		s.set(t, "traffic.yaml", onGateway, "response: {headers: {set: [{name: X-Site, value: ours}]}, errorPages: {pages: ["+list+"]}}")
	}
	asked := func(target string, status int, name string) *outcome {
		t.Helper()
		o := s.answer(t, target, "", map[string]string{"Accept": "application/json", "X-Request-Id": "of-a-client"})
		if o.status != status || o.answer.Name != name {
			t.Errorf("%s: %d of %q, want %d of %q: %s", target, o.status, o.answer.Name, status, name, clipped(o.body))
		}
		return o
	}
	pages(`{statuses: ["418"], body: tea}, {statuses: [4xx, "503"], backendRef: {name: v2, port: 8080}}, {statuses: [5xx, "404"], body: text}`)
	for target, status := range map[string]int{homeURL + "?status=404": 404, homeURL + "?status=503": 503, "http://nobody.example/": 404, farmURL: 503} {
		o := asked(target, status, "v2")
		has, of := o.answer.Headers, strings.TrimPrefix(target, "http://")
		if has.Get("X-Code") != strconv.Itoa(status) || has.Get("X-Original-Uri") != of[strings.IndexByte(of, '/'):] || has.Get("X-Format") != "application/json" ||
			has.Get("X-Forwarded-For") != "127.0.0.1" || o.answer.Path != "/" || !strings.HasPrefix(of, o.answer.Host) {
			t.Errorf("%s: the backend was asked %+v", target, o.answer)
		}
		if route := map[string]string{"home.example": "home", "farm.example": "farm"}[o.answer.Host]; has.Get("X-Route-Name") != route {
			t.Errorf("%s: X-Route-Name is %q, want %q", target, has.Get("X-Route-Name"), route)
		}
		if got := strings.Join(o.headers.Values("X-Site"), "|"); got != "ours" {
			t.Errorf("%s: the page has X-Site %q", target, got)
		}
	}
	for target, want := range map[string]string{homeURL + "?status=418": "tea", homeURL + "?status=500": "text"} {
		if o := s.answer(t, target, "", nil); string(o.body) != want {
			t.Errorf("%s: %q, want %q", target, clipped(o.body), want)
		}
	}
	asked(homeURL+"?status=401", 401, "v1")
	// What is too long to be held back stays, where that is known before.
	long := bytes.Repeat([]byte("x"), 4<<20)
	s.farm(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(long)))
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(long)
	}))
	if o := s.answers(t, farmURL, http.StatusNotFound); len(o.body) != len(long) {
		t.Errorf("a long error has %d bytes", len(o.body))
	}
	s.farm(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
		_, _ = w.Write(long)
	}))
	s.answers(t, farmURL, http.StatusInternalServerError)
	s.farm(t)

	// Without an endpoint that answers an error stays as it is.
	pages(`{statuses: [4xx, 5xx], backendRef: {name: farm, port: 8080}}`)
	asked(homeURL+"?status=503", 503, "v1")
	asked(homeURL+"?status=404", 404, "v1")
	asked(homeURL, 200, "v1")
	if o := s.answer(t, farmURL, "", nil); o.status != 503 || string(o.body) != "The backend is not available." {
		t.Errorf("a page of itself: %d %q", o.status, clipped(o.body))
	}
}

// TestOwnAnswers protects that the Gateway says in its own words why no backend has answered, and that a page has the
// last word.
func TestOwnAnswers(t *testing.T) {
	t.Parallel()
	s := startSite(t, nil)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	s.farm(t, port)
	is := func(target string, status int, body string) {
		t.Helper()
		if o := s.answers(t, target, status); string(o.body) != body {
			t.Errorf("%s: %q, want %q", target, o.body, body)
		}
	}
	is(farmURL, http.StatusServiceUnavailable, "The backend is not available.")
	s.farm(t)
	eventually(t, siteTimeout, func() error {
		if o := s.answer(t, farmURL, "", nil); o.status != http.StatusServiceUnavailable || string(o.body) != "The backend is not available." {
			return fmt.Errorf("without endpoints: %d %q", o.status, o.body)
		}
		return nil
	})
	is(homeURL+"?abort=true", http.StatusServiceUnavailable, "The backend is not available.")
	s.set(t, "traffic.yaml", onGateway, "request: {timeout: 100ms}")
	is(homeURL+"?delay=2s", http.StatusGatewayTimeout, "The backend took too long.")
	s.set(t, "traffic.yaml", onGateway, "response: {errorPages: {pages: [{statuses: [5xx], from: Gateway, body: ours}]}}")
	is(farmURL, http.StatusServiceUnavailable, "ours")
	if o := s.answer(t, homeURL+"?status=503", "", nil); o.answer.Name != "v1" {
		t.Errorf("the backend's own answer: %q", clipped(o.body))
	}
}
