//go:build linux

package e2e

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// answer sends a request of a tenant, empty for none, and returns all of the answer.
func (s *site) answer(t *testing.T, target, tenant string, headers map[string]string) *outcome {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	if tenant != "" {
		all["X-Tenant"] = tenant
	}
	maps.Copy(all, headers)
	o, err := (&clientCall{method: http.MethodGet, url: u, address: s.address, headers: all}).do(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

const (
	twoListeners  = "{name: http, port: 80, protocol: HTTP}"
	otherListener = "{name: other, port: 81, protocol: HTTP}"
	sharedTenant  = "limits: {each: {scope: Global, rates: [{limit: %d, window: 24h}, {limit: 1000, window: 1s}], counters: [\"request.headers['x-tenant']\"]%s}}"
)

// TestSharedLimits protects that limits of the scope Global are one count for all ports, through
// edits of routes, other limits and themselves.
func TestSharedLimits(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{"gateway.yaml": siteGateway(twoListeners, otherListener)})
	const home, other = "http://home.example/", "http://home.example:81/"
	inForce := func() {
		t.Helper()
		s.says(t, "RateLimitPolicy per-tenant", "All rules of the policy are in force")
	}
	answered := func(when, target, tenant string, want ...int) {
		t.Helper()
		for i, status := range want {
			if got := s.answer(t, target, tenant, nil).status; got != status {
				t.Errorf("%s, request %d of tenant %q to %s is answered %d, want %d", when, i, tenant, target, got, status)
			}
		}
	}
	listeners := s.envoyStats(t, "listener_manager")
	s.write(t, "limits.yaml", limitPolicy("per-tenant", onHome, fmt.Sprintf(sharedTenant, 3, "")))
	inForce()
	first := s.answer(t, home, "a", nil)
	if got := first.headers.Get("X-RateLimit-Limit") + " " + first.headers.Get("X-RateLimit-Remaining"); first.status != http.StatusOK || !strings.HasPrefix(got, "3, 3;w=86400") || !strings.HasSuffix(got, " 2") {
		t.Errorf("the first request is answered %d with limit and remaining %q", first.status, got)
	}
	answered("on another port", other, "a", http.StatusOK, http.StatusOK, http.StatusTooManyRequests)
	over := s.answer(t, home, "a", nil)
	if after, err := strconv.Atoi(over.headers.Get("Retry-After")); over.status != http.StatusTooManyRequests || err != nil || after < 86300 || after > 86400 {
		t.Errorf("over the limit: %d, Retry-After %q", over.status, over.headers.Get("Retry-After"))
	}
	answered("another tenant", home, "b", http.StatusOK)
	answered("without a tenant", home, "", http.StatusOK, http.StatusOK, http.StatusOK, http.StatusTooManyRequests)

	// What can't be read is counted as well: nobody passes because of how he writes.
	answered("a tenant that is no text", home, "\xff\xfe", http.StatusOK, http.StatusOK, http.StatusOK, http.StatusTooManyRequests)
	answered("a very long tenant", home, strings.Repeat("x", 10_000), http.StatusOK, http.StatusOK, http.StatusOK, http.StatusTooManyRequests)

	// Nothing is refilled by edits, not even of the limit itself.
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v2"))
	eventually(t, siteTimeout, func() error {
		return (&expectation{Status: codes{http.StatusOK}, Backend: "v2"}).check(s.answer(t, home, rand.Text(), nil))
	})
	answered("after an edit of the route", home, "a", http.StatusTooManyRequests)
	s.write(t, "limits.yaml", limitPolicy("per-tenant", onHome, fmt.Sprintf(sharedTenant, 4, "")))
	s.settles(t, home, "a", http.StatusOK)
	answered("after one more is allowed", other, "a", http.StatusTooManyRequests)
	for _, edit := range []struct {
		when       string
		free, full int // at /free, and elsewhere
	}{
		{"request.path != '/free'", http.StatusOK, http.StatusTooManyRequests},
		{"request.path == '/free'", http.StatusTooManyRequests, http.StatusOK},
		{"request.path.startsWith('/')", http.StatusTooManyRequests, http.StatusTooManyRequests},
	} {
		s.write(t, "limits.yaml", limitPolicy("per-tenant", onHome, fmt.Sprintf(sharedTenant, 4, fmt.Sprintf(", when: %q", edit.when))))
		s.settles(t, home, "a", edit.full)
		s.settles(t, home+"free", "a", edit.free)
		answered("with the condition "+edit.when, other+"free", "a", edit.free)
		answered("with the condition "+edit.when, other, "a", edit.full)
	}
	s.write(t, "limits.yaml", limitPolicy("per-tenant", onHome, fmt.Sprintf(sharedTenant, 1, ", shadow: true")))
	s.settles(t, home, "a", http.StatusOK)
	if o := s.answer(t, home, "a", nil); o.status != http.StatusOK || o.headers.Get("X-RateLimit-Limit") != "" {
		t.Errorf("a limit in the shadow answers %d with X-RateLimit-Limit %q", o.status, o.headers.Get("X-RateLimit-Limit"))
	}
	const shadowed = `gatehouse_limits_shadowed_total{gateway="site/gw",limit="site/per-tenant/each on HTTPRoute site/home#0"}`
	if _, metrics, err := s.get("/metrics"); err != nil || !strings.Contains(metrics, shadowed) {
		t.Errorf("no metric tells of the limit in the shadow: %v\n%s", err, linesWith(metrics, "gatehouse_limits"))
	}

	s.remove(t, "limits.yaml")
	s.settles(t, home, "a", http.StatusOK)
	if err := sameStats(listeners, s.envoyStats(t, "listener_manager"), "listener_manager.listener_added", "listener_manager.listener_modified",
		"listener_manager.listener_removed", "listener_manager.listener_in_place_updated"); err != nil {
		t.Error(err)
	}
}

// settles waits until requests of a tenant are answered with a status.
func (s *site) settles(t *testing.T, target, tenant string, status int) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		if got := s.answer(t, target, tenant, nil).status; got != status {
			return fmt.Errorf("requests of tenant %q to %s are answered %d, want %d", tenant, target, got, status)
		}
		return nil
	})
}

// TestSharedLimitsOutOfReach protects that requests pass, or don't, as a limit says while nobody
// counts, and that counting begins again by itself.
func TestSharedLimitsOutOfReach(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{"open.yaml": siteRoute("open", "open.example", "v1")})
	const home, open = "http://home.example/", "http://open.example/"
	s.write(t, "limits.yaml", limitPolicy("closed", onHome, "limits: {all: {scope: Global, onFailure: Deny, rates: [{limit: 100000, window: 1h}]}}")+
		limitPolicy("open", strings.Replace(onHome, "home", "open", 1), "limits: {all: {scope: Global, rates: [{limit: 100000, window: 1h}]}}"))
	for _, policy := range []string{"closed", "open"} {
		s.says(t, "RateLimitPolicy "+policy, "All rules of the policy are in force")
	}
	s.kill()
	if got := s.answer(t, home, "", nil).status; got != http.StatusServiceUnavailable {
		t.Errorf("nobody counts, and a limit that says Deny answers %d", got)
	}
	if got := s.answer(t, open, "", nil).status; got != http.StatusOK {
		t.Errorf("nobody counts, and a limit that says Allow answers %d", got)
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	if err := s.waitReady(); err != nil {
		t.Fatal(err)
	}
	s.settles(t, home, "", http.StatusOK)
}

// usageServer answers as services of language models do: with a document or, if asked for it, a
// stream of events, and says how many tokens it has cost as the query has it. It packs its answers
// for those who take that.
func usageServer(t *testing.T) (port int) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" || r.FormValue("packed") != "" {
			w.Header().Set("Content-Encoding", "gzip") // and it is not, which nobody can read
		}
		length, _ := strconv.Atoi(r.FormValue("length"))
		usage := fmt.Sprintf(`"usage": {"prompt_tokens": 1, "total_tokens": %s}`, r.FormValue("cost"))
		if r.FormValue("stream") == "" {
			w.Header().Set("Content-Type", cmp.Or(r.FormValue("type"), "application/json"))
			_, _ = fmt.Fprintf(w, `{"choices": [{"message": "%s"}], %s}`, strings.Repeat("x", length), usage)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{`{"choices": [{"delta": "hel"}]}`, `{"choices": [{"delta": "lo"}]}`, `{"choices": [], ` + usage + `}`, "[DONE]"} {
			_, _ = io.WriteString(w, "data: "+event+"\n\n")
			w.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(server.Close)
	_, text, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		t.Fatal(err)
	}
	return port
}

// TestTokenLimit protects that answers cost what they say, as documents and as streams, exactly
// to the one that is on its way.
func TestTokenLimit(t *testing.T) {
	t.Parallel()
	kinds := map[string]string{
		"document.example": "", "parameters.example": "&type=Application/JSON;charset=utf-8", "vendor.example": "&type=application/vnd.api%2Bjson",
		"stream.example": "&stream=1", "long.example": "&length=1000000", // which no buffer has
	}
	routes := httpBackend.leading(siteNamespace, "model", usageServer(t))
	for host := range kinds {
		routes += siteRoute(strings.TrimSuffix(host, ".example"), host, "model")
	}
	s := startSite(t, map[string]string{"model.yaml": routes})
	s.write(t, "limits.yaml", limitPolicy("tokens", onGateway,
		"limits: {all: {cost: {tokens: usage.total_tokens}, rates: [{limit: 200, window: 24h}], counters: [request.host]}}"))
	s.says(t, "RateLimitPolicy tokens", "All rules of the policy are in force")
	for host, kind := range kinds {
		at := func(cost string) string { return "http://" + host + "/?cost=" + cost + kind }
		ask := func(cost string) *outcome {
			return s.answer(t, at(cost), "", map[string]string{"Accept-Encoding": "gzip"})
		}
		if o := ask("150"); o.status != http.StatusOK || !strings.Contains(string(o.body), "150") {
			t.Fatalf("%s: the first answer is %d %q", host, o.status, o.body)
		}
		eventually(t, siteTimeout, func() error {
			o := ask("0")
			if got := o.headers.Get("X-RateLimit-Remaining"); got != "50" {
				return fmt.Errorf("%s: %d, and X-RateLimit-Remaining is %q, want 50", host, o.status, got)
			}
			return nil
		})
		if o := ask("150"); o.status != http.StatusOK { // the one that goes beyond
			t.Errorf("%s: with 50 of 200 tokens left a request is answered %d", host, o.status)
		}
		s.settles(t, at("0"), "", http.StatusTooManyRequests)
	}
}

// TestTokenLimitOfPackedAnswers protects that answers that can't be read aren't for nothing: they
// cost as many tokens as they have bytes.
func TestTokenLimitOfPackedAnswers(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{"model.yaml": httpBackend.leading(siteNamespace, "model", usageServer(t)) + siteRoute("model", "model.example", "model")})
	s.write(t, "limits.yaml", limitPolicy("tokens", onGateway, "limits: {all: {cost: {tokens: usage.total_tokens}, rates: [{limit: 1000, window: 24h}]}}"))
	s.says(t, "RateLimitPolicy tokens", "All rules of the policy are in force")
	const at = "http://model.example/?cost=1&packed=1"
	if o := s.answer(t, at+"&length=2000", "", nil); o.status != http.StatusOK {
		t.Fatalf("the first answer is %d", o.status)
	}
	s.settles(t, at, "", http.StatusTooManyRequests)
}

// linesWith are the lines of a text that have something.
func linesWith(text, what string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, what) {
			out.WriteString(line)
		}
	}
	return out.String()
}
