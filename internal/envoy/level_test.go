package envoy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

func setting(level string) *ir.HeaderChanges {
	return &ir.HeaderChanges{
		Set: []ir.Header{{Name: "X-Level", Value: level}, {Name: "X-" + level, Value: "here"}},
		Add: []ir.Header{{Name: "X-All", Value: level}},
	}
}

func levelled(level string) ir.Filters {
	return ir.Filters{
		RequestHeaders: setting(level), ResponseHeaders: setting(level),
		CORS: &ir.CORS{AllowOrigins: []string{"https://" + level + ".test"}},
	}
}

// A filter at each level, and the inner one has the last word.
func TestEnvoyLevels(t *testing.T) {
	b, b2 := newBackend(t, "echo", ir.HTTP1, nil), newBackend(t, "echo2", ir.HTTP1, nil)
	listener, host := levelled("listener"), levelled("host")
	backend := to(b)
	backend[0].Filters = ir.Filters{RequestHeaders: setting("backend"), ResponseHeaders: setting("backend")}
	both := append(to(b2), backend...)
	both[0].Filters = backend[0].Filters
	rules := func() []*ir.Rule {
		return []*ir.Rule{
			{Match: prefix("/rule"), Filters: levelled("rule"), Backends: to(b)},
			{Match: prefix("/backend"), Filters: levelled("rule"), Backends: backend},
			{Match: prefix("/backends"), Filters: levelled("rule"), Backends: both},
			{Match: prefix("/status"), Status: http.StatusTeapot},
			{Match: prefix("/"), Backends: to(b)},
		}
	}
	s := plain(append(rulesOn("a.example", rules()...), rulesOn("b.example", rules()...)...), b, b2)
	s.listeners[0].Filters, s.tables["http-80"][0].Filters = &listener, &host
	r := s.start(t)
	for _, c := range []struct {
		url    string
		levels []string
	}{
		{"http://a.example/", []string{"listener", "host"}},
		{"http://b.example/", []string{"listener"}},
		{"http://a.example/status", []string{"listener", "host"}},
		{"http://a.example/rule", []string{"listener", "host", "rule"}},
		{"http://b.example/rule", []string{"listener", "rule"}},
		{"http://a.example/backend", []string{"listener", "host", "rule", "backend"}},
		{"http://a.example/backends", []string{"listener", "host", "rule", "backend"}},
		{"http://b.example/backends", []string{"listener", "rule", "backend"}},
	} {
		last := c.levels[len(c.levels)-1]
		a := r.get(t, c.url)
		headers := map[string]http.Header{"request": a.Seen.Header, "answer": a.Header}
		if strings.HasSuffix(c.url, "/status") {
			delete(headers, "request")
		}
		for what, h := range headers {
			if got := h.Get("X-Level"); got != last {
				t.Errorf("%s: %s: the last word has %q, want %q", c.url, what, got, last)
			}
			if diff := cmp.Diff(c.levels, h.Values("X-All")); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", c.url, what, diff)
			}
			for _, level := range c.levels {
				if h.Get("X-"+level) != "here" {
					t.Errorf("%s: %s: nothing of the %s", c.url, what, level)
				}
			}
		}
		switch {
		case last == "backend":
			last = "rule" // no backend has CORS
		case headers["request"] == nil:
			continue // nor has an answer of Envoy's own
		}
		for _, level := range []string{"listener", "host", "rule"} {
			origin := "https://" + level + ".test"
			a := r.do(t, http.MethodOptions, c.url, http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"GET"}}, nil)
			if allowed := a.Header.Get("Access-Control-Allow-Origin") == origin; allowed != (level == last) {
				t.Errorf("%s: an origin of the %s is allowed: %t", c.url, level, allowed)
			}
		}
	}
}

// The innermost authorization is asked, and no other one, whatever filters the two are.
func TestEnvoyLevelsOfAuth(t *testing.T) {
	asked := map[string]*backend{}
	auth := func(name string, own bool) *ir.Auth {
		if asked[name] == nil {
			asked[name] = newBackend(t, name, ir.HTTP1, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		}
		a := &ir.Auth{Backend: asked[name].ir.Key(), Timeout: 10 * time.Second}
		if own {
			a.RequestHeaders = []string{"x-any"}
		}
		return a
	}
	b := newBackend(t, "echo", ir.HTTP1, nil)
	for name, own := range map[string][3]bool{
		"the same filter": {}, "own ones": {true, true, true}, "another at the host": {false, true, false}, "another at the rule": {false, false, true},
		"an own one outside": {true, false, false},
	} {
		s := plain(append(rulesOn("a.example",
			&ir.Rule{Match: prefix("/rule"), Filters: ir.Filters{Auth: auth("rule", own[2])}, Backends: to(b)},
			&ir.Rule{Match: prefix("/"), Backends: to(b)},
		), rulesOn("b.example", &ir.Rule{Match: prefix("/"), Backends: to(b)})...), b)
		s.listeners[0].Filters = &ir.Filters{Auth: auth("listener", own[0])}
		s.tables["http-80"][0].Filters = &ir.Filters{Auth: auth("host", own[1])}
		for _, a := range asked {
			s.backends, s.endpoints = append(s.backends, a.ir), append(s.endpoints, a.eps)
		}
		r := s.start(t)
		for url, level := range map[string]string{
			"http://b.example/": "listener", "http://a.example/": "host", "http://a.example/rule": "rule",
		} {
			for _, a := range asked {
				a.mu.Lock()
				a.seen = nil
				a.mu.Unlock()
			}
			if got := r.get(t, url); got.Status != http.StatusOK {
				t.Errorf("%s: %s: %d", name, url, got.Status)
			}
			for which, a := range asked {
				a.mu.Lock()
				if n := len(a.seen); (n == 1) != (which == level) || n > 1 {
					t.Errorf("%s: %s: the service of the %s was asked %d times", name, url, which, n)
				}
				a.mu.Unlock()
			}
		}
	}
}

// Without the filters that can't be given to Envoy, no request passes.
func TestLevelsThatCannotBe(t *testing.T) {
	for what, f := range map[string]*ir.Filters{
		"a rewrite":  {Rewrite: &ir.Rewrite{Hostname: "x.test"}},
		"a Host":     {RequestHeaders: &ir.HeaderChanges{Set: []ir.Header{{Name: "Host", Value: "x.test"}}}},
		"no UTF-8":   {RequestHeaders: &ir.HeaderChanges{Set: []ir.Header{{Name: "X", Value: "\xff"}}}},
		"no backend": {Auth: &ir.Auth{}},
	} {
		h := simpleHost(1)
		h.Filters = f
		part, errs := HostPart(h)
		if len(errs) != len(h.Rules) || errs[0].Source != h.Rules[0].Source || part == nil {
			t.Errorf("%s: errors %v", what, errs)
			continue
		}
		hosts := decode(t, RouteTable("t", []*Part{part}), &routev3.RouteConfiguration{}).VirtualHosts
		for _, route := range hosts[0].Routes {
			if route.GetDirectResponse().GetStatus() != http.StatusInternalServerError {
				t.Errorf("%s at a host: %v", what, route)
			}
		}
		if good, errs := HostPart(simpleHost(2)); errs != nil {
			t.Error(errs)
		} else if table, err := BundledRouteTable("t", AroundTables(f, false), []*Bundle{NewBundle([]*Part{good})}); err == nil || len(table.Parts()) != 0 {
			t.Errorf("%s at a listener is let pass", what)
		}
	}
}

// What no level asks for changes no byte.
func TestTableWithoutFilters(t *testing.T) {
	part, _ := HostPart(simpleHost(1))
	table, err := BundledRouteTable("t", AroundTables(&ir.Filters{}, false), []*Bundle{NewBundle([]*Part{part})})
	if err != nil || !table.Equal(RouteTable("t", []*Part{part})) {
		t.Errorf("another table (%v)", err)
	}
}
