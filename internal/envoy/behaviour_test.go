package envoy

import (
	"math"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

func TestEnvoyRewritePath(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	rule := func(m ir.Match, p ir.PathRewrite) *ir.Rule {
		return &ir.Rule{Match: m, Backends: to(b), Filters: ir.Filters{Rewrite: &ir.Rewrite{Path: &p}}}
	}
	exact := ir.Match{Path: ir.PathMatch{Kind: ir.PathExact, Value: "/exact"}}
	regex := ir.Match{Path: ir.PathMatch{Kind: ir.PathRegex, Value: "/re/[0-9]+"}}
	r := plain(rulesOn("a.example",
		rule(prefix("/foo"), ir.PathRewrite{Value: "/xyz"}),
		rule(prefix("/slash"), ir.PathRewrite{Value: "/xyz/"}),
		rule(prefix("/empty"), ir.PathRewrite{Value: ""}),
		rule(prefix("/root"), ir.PathRewrite{Value: "/"}),
		rule(prefix("/same"), ir.PathRewrite{Value: "/same"}),
		rule(prefix("/a.b"), ir.PathRewrite{Value: "/"}),
		rule(prefix("/full"), ir.PathRewrite{Full: true, Value: `/one%20\1%41REQ(x)%25`}),
		rule(prefix("/bare"), ir.PathRewrite{Full: true, Value: "one"}),
		rule(exact, ir.PathRewrite{Full: true, Value: "/one"}),
		rule(regex, ir.PathRewrite{Full: true, Value: "/one"}),
		rule(prefix("/"), ir.PathRewrite{Value: "/all"}),
	), b).start(t)
	for _, c := range []struct{ request, want string }{
		{"/foo/bar", "/xyz/bar"}, {"/foo", "/xyz"}, {"/foo/", "/xyz/"}, {"/foo?q=1", "/xyz?q=1"}, {"/foo/bar?q=/foo", "/xyz/bar?q=/foo"},
		{"/slash/bar", "/xyz/bar"}, {"/slash", "/xyz"}, {"/slash/", "/xyz/"},
		{"/empty/bar", "/bar"}, {"/empty", "/"}, {"/empty/", "/"}, {"/empty?q=1", "/?q=1"}, {"/empty//bar", "/bar"},
		{"/root/bar/empty", "/bar/empty"}, {"/root", "/"}, {"/root/", "/"}, {"/root/root/x", "/root/x"},
		{"/same/x", "/same/x"}, {"/same", "/same"},
		{"/a.b/c", "/c"},
		{"/full/x/y?q=1", `/one%20\1%41REQ(x)%25?q=1`}, {"/full", `/one%20\1%41REQ(x)%25`},
		{"/bare/x", "/one"},
		{"/exact?q=1", "/one?q=1"}, {"/re/12?q", "/one?q"},
		{"/", "/all/"}, {"/bar", "/all/bar"}, {"/bar?x=1", "/all/bar?x=1"},
	} {
		a := r.get(t, "http://a.example"+c.request)
		if a.Status != 200 || a.Seen.Path != c.want {
			t.Errorf("%s: %d, backend saw %q, want %q", c.request, a.Status, a.Seen.Path, c.want)
		}
		if got := a.Seen.Header; got.Get("X-Envoy-Original-Path") != "" {
			t.Errorf("%s: backend sees Envoy's headers: %v", c.request, got)
		}
	}
}

func TestEnvoyRedirect(t *testing.T) {
	rule := func(m ir.Match, r ir.Redirect) *ir.Rule {
		if r.Status == 0 {
			r.Status = 302
		}
		return &ir.Rule{Match: m, Redirect: &r}
	}
	hosts := append(rulesOn("a.example",
		rule(prefix("/foo"), ir.Redirect{Path: &ir.PathRewrite{Value: "/xyz"}}),
		rule(prefix("/empty"), ir.Redirect{Path: &ir.PathRewrite{Value: ""}}),
		rule(prefix("/root"), ir.Redirect{Path: &ir.PathRewrite{Value: "/"}}),
		rule(prefix("/full"), ir.Redirect{Path: &ir.PathRewrite{Full: true, Value: `/one\1%41`}}),
		rule(prefix("/host"), ir.Redirect{Hostname: "b.example"}),
		rule(prefix("/hostport"), ir.Redirect{Hostname: "b.example", Port: 8080}),
		rule(prefix("/port"), ir.Redirect{Port: 8443, Scheme: "https", Status: 308}),
		rule(prefix("/scheme"), ir.Redirect{Scheme: "https", Status: 301}),
		rule(prefix("/303"), ir.Redirect{Status: 303}),
		rule(prefix("/307"), ir.Redirect{Status: 307}),
		rule(prefix("/"), ir.Redirect{Hostname: "b.example", Path: &ir.PathRewrite{Value: "/all"}}),
	), append(rulesOn("*.w.example",
		rule(prefix("/foo.'x"), ir.Redirect{Path: &ir.PathRewrite{Value: "/xyz%41"}}),
		rule(prefix("/p)%20('q"), ir.Redirect{Path: &ir.PathRewrite{Value: "/)%20('"}}),
		rule(prefix("/empty"), ir.Redirect{Path: &ir.PathRewrite{Value: ""}}),
		rule(prefix("/full"), ir.Redirect{Path: &ir.PathRewrite{Full: true, Value: "/one%41"}}),
		rule(prefix("/query"), ir.Redirect{Path: &ir.PathRewrite{Full: true, Value: "/one?new=1"}}),
		rule(prefix("/all"), ir.Redirect{}),
		rule(prefix("/"), ir.Redirect{Scheme: "https"})),
		rulesOn("*", rule(prefix("/"), ir.Redirect{Status: 307}))...)...)
	r := plain(hosts).start(t)
	for _, c := range []struct {
		request string
		status  int
		want    string
	}{
		{"a.example/foo/bar?q=1", 302, "http://a.example/xyz/bar?q=1"},
		{"a.example/foo", 302, "http://a.example/xyz"},
		{"a.example/empty", 302, "http://a.example/"},
		{"a.example/empty/", 302, "http://a.example/"},
		{"a.example/empty/x?q=1", 302, "http://a.example/x?q=1"},
		{"a.example/empty//evil.example", 302, "http://a.example/evil.example"},
		{"a.example/root", 302, "http://a.example/"},
		{"a.example/root/x", 302, "http://a.example/x"},
		{"a.example/full/x?q=1", 302, `http://a.example/one\1%41?q=1`},
		{"a.example/host/x?q=1", 302, "http://b.example/host/x?q=1"},
		{"a.example:81/host/x", 302, "http://b.example/host/x"},
		{"a.example/hostport", 302, "http://b.example:8080/hostport"},
		{"a.example/port", 308, "https://a.example:8443/port"},
		{"a.example:81/port", 308, "https://a.example:8443/port"},
		{"a.example/scheme", 301, "https://a.example/scheme"},
		{"a.example:80/scheme", 301, "https://a.example/scheme"},
		{"a.example:8080/scheme", 301, "https://a.example/scheme"},
		{"a.example:8080/303", 303, "http://a.example/303"},
		{"a.example/307", 307, "http://a.example/307"},
		{"a.w.example:8080/x", 302, "https://a.w.example/x"},
		{"a.w.example/x", 302, "https://a.w.example/x"},
		{"a.w.example:8080/x?q=1", 302, "https://a.w.example/x?q=1"},
		{"a.w.example:8080/foo.'x/bar?q=1", 302, "http://a.w.example/xyz%41/bar?q=1"},
		{"a.w.example:8080/foo.'x", 302, "http://a.w.example/xyz%41"},
		{"a.w.example:8080/p)%20('q/bar", 302, "http://a.w.example/)%20('/bar"},
		{"a.w.example/p)%20('q/bar", 302, "http://a.w.example/)%20('/bar"},
		{"a.w.example:8080/empty?q=1", 302, "http://a.w.example/?q=1"},
		{"a.w.example:8080/empty//x/y", 302, "http://a.w.example/x/y"},
		{"a.w.example:8080/full/x?q=1", 302, "http://a.w.example/one%41?q=1"},
		{"a.w.example:8080/full", 302, "http://a.w.example/one%41"},
		{"a.w.example:8080/query?q=1", 302, "http://a.w.example/one?new=1"},
		{"a.w.example/query?q=1", 302, "http://a.w.example/one?new=1"},
		{"a.w.example:8080/all", 302, "http://a.w.example/all"},
		{"[::1]:8080/x", 307, "http://[::1]/x"},
		{"[::1]/x", 307, "http://[::1]/x"},
		{"127.0.0.1:8080/x", 307, "http://127.0.0.1/x"},
		{"a.example/", 302, "http://b.example/all/"},
		{"a.example/x", 302, "http://b.example/all/x"},
	} {
		a := r.get(t, "http://"+c.request)
		if got := a.Header.Get("Location"); a.Status != c.status || got != c.want {
			t.Errorf("%s: %d %q, want %d %q", c.request, a.Status, got, c.status, c.want)
		}
	}
}

func TestEnvoyMatch(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	path := func(k ir.PathKind, v string) ir.Match { return ir.Match{Path: ir.PathMatch{Kind: k, Value: v}} }
	named := func(name string, m ir.Match) *ir.Rule {
		return &ir.Rule{Match: m, Backends: to(b), Filters: ir.Filters{
			RequestHeaders: &ir.HeaderChanges{Set: []ir.Header{{Name: "Rule", Value: name}}},
		}}
	}
	header := func(v ir.ValueMatch) ir.Match {
		m := prefix("/header")
		m.Headers = []ir.ValueMatch{v}
		return m
	}
	query := func(v ...ir.ValueMatch) ir.Match {
		m := prefix("/query")
		m.Query = v
		return m
	}
	method := prefix("/method")
	method.Method = "PATCH"
	r := plain(append(rulesOn("a.example",
		named("exact", path(ir.PathExact, "/exact")),
		named("prefix", prefix("/prefix")),
		named("regex", path(ir.PathRegex, "/re(x|gex)/[0-9]+")),
		named("method", method),
		named("header", header(ir.ValueMatch{Name: "x-a", Value: "one"})),
		named("header-regex", header(ir.ValueMatch{Name: "x-a", Value: "t.*", Regex: true})),
		named("header-host", header(ir.ValueMatch{Name: "host", Value: "a.example"})),
		named("query2", query(ir.ValueMatch{Name: "q", Value: "one"}, ir.ValueMatch{Name: "r", Value: "two"})),
		named("query", query(ir.ValueMatch{Name: "q", Value: "one"})),
		named("query-space", query(ir.ValueMatch{Name: "q", Value: "a b&c"})),
		named("query-regex", query(ir.ValueMatch{Name: "q", Value: "t.*", Regex: true})),
	), append(rulesOn("*.w.example", named("wildcard", prefix("/"))), rulesOn("*", named("any", path(ir.PathExact, "/any")))...)...), b).start(t)
	for _, c := range []struct {
		method, url, header, want string
	}{
		{"GET", "a.example/exact", "", "exact"},
		{"GET", "a.example/exact?q=1", "", "exact"},
		{"GET", "a.example:8080/exact", "", "exact"},
		{"GET", "A.EXAMPLE/exact", "", "exact"},
		{"GET", "a.example/exact/", "", ""},
		{"GET", "a.example/Exact", "", ""},
		{"GET", "a.example/prefix", "", "prefix"},
		{"GET", "a.example/prefix/", "", "prefix"},
		{"GET", "a.example/prefix/x?q", "", "prefix"},
		{"GET", "a.example/x/../prefix/x", "", "prefix"},
		{"GET", "a.example/prefixed", "", ""},
		{"GET", "a.example/rex/12", "", "regex"},
		{"GET", "a.example/regex/12?q", "", "regex"},
		{"GET", "a.example/regex/12/", "", ""},
		{"GET", "a.example/x/regex/12", "", ""},
		{"PATCH", "a.example/method", "", "method"},
		{"GET", "a.example/method", "", ""},
		{"GET", "a.example/header", "one", "header"},
		{"GET", "a.example/header", "two", "header-regex"},
		{"GET", "a.example/header", "a two", "header-host"},
		{"GET", "a.example/query?q=one", "", "query"},
		{"GET", "a.example/query?r=two&q=one", "", "query2"},
		{"GET", "a.example/query?q=two", "", "query-regex"},
		{"GET", "a.example/query?q=a+b%26c", "", "query-space"},
		{"GET", "a.example/query?q=a%20b%26c", "", "query-space"},
		{"GET", "a.example/query?q=other", "", ""},
		{"GET", "x.w.example/", "", "wildcard"},
		{"GET", "x.y.w.example:81/", "", "wildcard"},
		{"GET", "w.example/", "", ""},
		{"GET", "other.example/any", "", "any"},
		{"GET", "a.example/any", "", ""},
	} {
		a := r.do(t, c.method, "http://"+c.url, http.Header{"X-A": {c.header}}, nil)
		want := http.StatusOK
		if c.want == "" {
			want = http.StatusNotFound
		}
		if got := a.Seen.Header.Get("Rule"); a.Status != want || got != c.want {
			t.Errorf("%s %s %q: %d by rule %q, want %q", c.method, c.url, c.header, a.Status, got, c.want)
		}
	}
	if a := r.get(t, "http://a.example:8080/exact"); a.Seen.Host != "a.example:8080" {
		t.Errorf("the backend sees Host %q", a.Seen.Host)
	}
}

func TestEnvoyHeaders(t *testing.T) {
	b, b2 := newBackend(t, "echo", ir.HTTP1, nil), newBackend(t, "echo2", ir.HTTP1, nil)
	changes := func(v string) *ir.HeaderChanges {
		return &ir.HeaderChanges{
			Set:    []ir.Header{{Name: "X-Set", Value: "set 100% " + v}},
			Add:    []ir.Header{{Name: "X-Add", Value: "add " + v}, {Name: "X-Add", Value: "again " + v}},
			Remove: []string{"X-Remove-" + v},
		}
	}
	both := func(v string) ir.Filters {
		return ir.Filters{RequestHeaders: changes(v), ResponseHeaders: changes(v)}
	}
	one := to(b)
	one[0].Filters = both("backend")
	two := []ir.WeightedBackend{
		{Backend: b.ir.Key(), Weight: 1, Filters: both("backend")},
		{Backend: b2.ir.Key(), Weight: 1, Filters: both("backend")},
	}
	moved := []ir.WeightedBackend{
		{Backend: b.ir.Key(), Weight: 1, Filters: ir.Filters{Rewrite: &ir.Rewrite{Hostname: "one.example"}}},
		{Backend: b2.ir.Key(), Weight: 1, Filters: ir.Filters{RequestHeaders: &ir.HeaderChanges{
			Set: []ir.Header{{Name: "Host", Value: "two.example"}},
		}}},
	}
	r := plain(rulesOn("a.example",
		&ir.Rule{Match: prefix("/rule"), Filters: both("rule"), Backends: to(b)},
		&ir.Rule{Match: prefix("/one"), Filters: both("rule"), Backends: one},
		&ir.Rule{Match: prefix("/two"), Filters: both("rule"), Backends: two},
		&ir.Rule{Match: prefix("/host"), Filters: ir.Filters{Rewrite: &ir.Rewrite{Hostname: "new.example"}}, Backends: to(b)},
		&ir.Rule{Match: prefix("/moved"), Filters: ir.Filters{Rewrite: &ir.Rewrite{Hostname: "new.example"}}, Backends: moved},
		&ir.Rule{Match: prefix("/status"), Filters: both("rule"), Status: 500},
		&ir.Rule{Match: prefix("/redirect"), Filters: both("rule"), Redirect: &ir.Redirect{Status: 302, Hostname: "b.example"}},
		&ir.Rule{Match: prefix("/empty"), Filters: ir.Filters{RequestHeaders: &ir.HeaderChanges{Set: []ir.Header{{Name: "X-Set"}}}}, Backends: to(b)},
	), b, b2).start(t)
	send := http.Header{
		"X-Set": {"client"}, "X-Add": {"client"},
		"X-Remove-Rule": {"x"}, "X-Remove-Backend": {"x"}, "X-Stay": {"x"},
	}
	check := func(what string, h http.Header, want map[string][]string) {
		t.Helper()
		for name, values := range want {
			if diff := cmp.Diff(values, h.Values(name)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", what, name, diff)
			}
		}
	}
	a := r.do(t, "GET", "http://a.example/rule", send, nil)
	check("rule, request", a.Seen.Header, map[string][]string{
		"X-Set": {"set 100% rule"}, "X-Add": {"client", "add rule", "again rule"},
		"X-Remove-Rule": nil, "X-Remove-Backend": {"x"}, "X-Stay": {"x"},
	})
	check("rule, answer", a.Header, map[string][]string{"X-Set": {"set 100% rule"}, "X-Add": {"add rule", "again rule"}})
	for _, path := range []string{"/one", "/two"} {
		a := r.do(t, "GET", "http://a.example"+path, send, nil)
		check(path+", request", a.Seen.Header, map[string][]string{
			"X-Set": {"set 100% backend"}, "X-Add": {"client", "add rule", "again rule", "add backend", "again backend"},
			"X-Remove-Rule": nil, "X-Remove-Backend": nil, "X-Stay": {"x"},
		})
		check(path+", answer", a.Header, map[string][]string{
			"X-Set": {"set 100% backend"}, "X-Add": {"add rule", "again rule", "add backend", "again backend"},
		})
	}
	for path, status := range map[string]int{"/status": 500, "/redirect": 302} {
		a := r.get(t, "http://a.example"+path)
		check(path, a.Header, map[string][]string{"X-Set": {"set 100% rule"}, "X-Add": {"add rule", "again rule"}})
		if a.Status != status {
			t.Errorf("%s: %d", path, a.Status)
		}
	}
	check("empty", r.do(t, "GET", "http://a.example/empty", send, nil).Seen.Header, map[string][]string{"X-Set": {""}})
	if a := r.get(t, "http://a.example/host"); a.Seen.Host != "new.example" {
		t.Errorf("host rewrite: %q", a.Seen.Host)
	}
	for range 10 {
		a := r.get(t, "http://a.example/moved")
		if want := map[string]string{"echo": "one.example", "echo2": "two.example"}[a.Seen.Backend]; a.Seen.Host != want {
			t.Errorf("%s sees Host %q, want %q", a.Seen.Backend, a.Seen.Host, want)
		}
	}
}

func TestEnvoyWeights(t *testing.T) {
	b, b2 := newBackend(t, "echo", ir.HTTP1, nil), newBackend(t, "echo2", ir.HTTP1, nil)
	path := func(p *ir.PathRewrite) ir.Filters { return ir.Filters{Rewrite: &ir.Rewrite{Path: p}} }
	r := plain(rulesOn("a.example",
		&ir.Rule{Match: prefix("/invalid"), Backends: []ir.WeightedBackend{{Weight: 1}}},
		&ir.Rule{Match: prefix("/zero"), Backends: []ir.WeightedBackend{{Backend: b.ir.Key()}}},
		&ir.Rule{Match: prefix("/none")},
		&ir.Rule{Match: prefix("/status"), Status: 404},
		&ir.Rule{Match: prefix("/share"), Backends: []ir.WeightedBackend{{Backend: b.ir.Key(), Weight: 7}, {Weight: 3}, {Backend: b2.ir.Key()}}},
		&ir.Rule{Match: prefix("/split"), Backends: []ir.WeightedBackend{
			{Backend: b.ir.Key(), Weight: 5, Filters: path(&ir.PathRewrite{Value: "/one"})},
			{Backend: b2.ir.Key(), Weight: 3, Filters: path(&ir.PathRewrite{Full: true, Value: "/two"})},
			{Weight: 2},
		}},
	), b, b2).start(t)
	for path, want := range map[string]int{"/invalid": 500, "/zero": 500, "/none": 500, "/status": 404} {
		if a := r.get(t, "http://a.example"+path); a.Status != want || a.Body != "" {
			t.Errorf("%s: %d %q, want %d", path, a.Status, a.Body, want)
		}
	}
	const n = 1000
	shares := func(path string) map[string]float64 {
		got := map[string]float64{}
		for range n {
			a := r.get(t, "http://a.example"+path)
			switch a.Status {
			case 200:
				got[a.Seen.Backend+" "+a.Seen.Path]++
			default:
				got[http.StatusText(a.Status)]++
			}
		}
		return got
	}
	for path, want := range map[string]map[string]float64{
		"/share/x": {"echo /share/x": .7, "Internal Server Error": .3},
		"/split/x": {"echo /one/x": .5, "echo2 /two": .3, "Internal Server Error": .2},
	} {
		got := shares(path)
		for k, v := range want {
			// Five standard deviations.
			if sd := math.Sqrt(n * v * (1 - v)); math.Abs(got[k]-n*v) > 5*sd {
				t.Errorf("%s: %v, want shares %v", path, got, want)
			}
			delete(got, k)
		}
		if len(got) > 0 {
			t.Errorf("%s: unexpected %v", path, got)
		}
	}
}
