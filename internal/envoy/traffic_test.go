package envoy

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("not within 30 s: %s", what)
		case <-tick.C:
		}
	}
}

func TestEnvoyMirror(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	m1, m2, m3 := newBackend(t, "m1", ir.HTTP1, nil), newBackend(t, "m2", ir.HTTP1, nil), newBackend(t, "m3", ir.HTTP1, nil)
	r := plain(rulesOn("a.example", &ir.Rule{
		Match: prefix("/"), Backends: to(b),
		Filters: ir.Filters{
			RequestHeaders: &ir.HeaderChanges{Set: []ir.Header{{Name: "X-Set", Value: "1"}}},
			Mirrors: []ir.Mirror{
				{Backend: m1.ir.Key(), Numerator: 1, Denominator: 1},
				{Backend: m2.ir.Key(), Numerator: 1, Denominator: 2},
				{Backend: m3.ir.Key(), Numerator: 0, Denominator: 3},
				{Backend: ir.NamedBackend("default/missing:80"), Numerator: 100, Denominator: 100},
			},
		},
	}), b, m1, m2, m3).start(t)
	const n = 200
	body := bytes.Repeat([]byte("x"), 300<<10) // more than a connection's buffer
	for range n {
		if a := r.do(t, "POST", "http://a.example/x", nil, body); a.Status != 200 || a.Seen.Body != len(body) {
			t.Fatalf("%d, %d bytes", a.Status, a.Seen.Body)
		}
	}
	eventually(t, "all requests mirrored", func() bool { return len(m1.requests()) == n })
	for _, s := range m1.requests() {
		if s.Host != "a.example" || s.Header.Get("X-Set") != "1" || s.Body != len(body) {
			t.Fatalf("the mirror sees Host %q, X-Set %q, %d bytes", s.Host, s.Header.Get("X-Set"), s.Body)
		}
	}
	if got := len(m2.requests()); got < 70 || got > 130 {
		t.Errorf("a mirror of one half got %d of %d", got, n)
	}
	if got := len(m3.requests()); got != 0 {
		t.Errorf("a mirror of nothing got %d", got)
	}
}

// The cases of the official suite's HTTPRouteCORS, and what the API says beyond
// them.
func TestEnvoyCORS(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	rule := func(path string, c ir.CORS) *ir.Rule {
		c.MaxAge = max(c.MaxAge, 5*time.Second)
		return &ir.Rule{Match: prefix(path), Backends: to(b), Filters: ir.Filters{CORS: &c}}
	}
	r := plain(rulesOn("*",
		rule("/full", ir.CORS{
			AllowOrigins:  []string{"https://www.foo.com", "https://*.bar.com", "http://port.com:80", "https://port.com:8443"},
			AllowMethods:  []string{"GET", "OPTIONS"},
			AllowHeaders:  []string{"x-header-1", "x-header-2"},
			ExposeHeaders: []string{"x-header-3", "x-header-4"}, MaxAge: time.Hour, AllowCredentials: true,
		}),
		rule("/methods", ir.CORS{AllowOrigins: []string{"https://www.foo.com"}, AllowMethods: []string{"*"}}),
		rule("/origin", ir.CORS{AllowOrigins: []string{"*"}, AllowMethods: []string{"PUT"}}),
		rule("/hosts", ir.CORS{AllowOrigins: []string{"https://*"}}),
		rule("/all-credentials", ir.CORS{
			AllowOrigins: []string{"*"}, AllowMethods: []string{"*"}, AllowHeaders: []string{"*"}, AllowCredentials: true,
		}),
		rule("/all", ir.CORS{AllowOrigins: []string{"*"}, AllowMethods: []string{"*"}, AllowHeaders: []string{"*"}}),
		&ir.Rule{Match: prefix("/off"), Backends: to(b)},
	), b).start(t)
	type headers map[string]string
	for _, c := range []struct {
		name, method, path string
		request            headers
		want               headers // - is absent
		forwarded          bool
	}{
		{"exact", "OPTIONS", "/full", headers{"Origin": "https://www.foo.com", "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x-header-1, x-header-2"}, headers{
			"Allow-Origin": "https://www.foo.com", "Allow-Methods": "GET, OPTIONS", "Allow-Headers": "x-header-1, x-header-2",
			"Expose-Headers": "x-header-3, x-header-4", "Max-Age": "3600", "Allow-Credentials": "true",
		}, false},
		{"wildcard", "OPTIONS", "/full", headers{"Origin": "https://www.bar.com", "Access-Control-Request-Method": "GET"}, headers{"Allow-Origin": "https://www.bar.com"}, false},
		{"wildcard, labels", "OPTIONS", "/full", headers{"Origin": "https://xpto.www.bar.com", "Access-Control-Request-Method": "GET"}, headers{"Allow-Origin": "https://xpto.www.bar.com"}, false},
		{"wildcard, no label", "OPTIONS", "/full", headers{"Origin": "https://bar.com", "Access-Control-Request-Method": "GET"}, headers{"Allow-Origin": "-"}, false},
		{"wildcard, look-alike", "OPTIONS", "/full", headers{"Origin": "https://evil.com/.bar.com", "Access-Control-Request-Method": "GET"}, headers{"Allow-Origin": "-"}, false},
		{"wildcard, port", "OPTIONS", "/full", headers{"Origin": "https://www.bar.com:8443", "Access-Control-Request-Method": "GET"}, headers{"Allow-Origin": "-"}, false},
		{"scheme's port", "OPTIONS", "/full", headers{"Origin": "http://port.com", "Access-Control-Request-Method": "GET"}, headers{"Allow-Origin": "http://port.com"}, false},
		{"port", "OPTIONS", "/full", headers{"Origin": "https://port.com:8443", "Access-Control-Request-Method": "GET"}, headers{"Allow-Origin": "https://port.com:8443"}, false},
		{"other origin", "OPTIONS", "/full", headers{"Origin": "https://foobar.com", "Access-Control-Request-Method": "GET"}, headers{"Allow-Origin": "-"}, false},
		{"simple", "GET", "/full", headers{"Origin": "https://www.foo.com"}, headers{"Allow-Origin": "https://www.foo.com", "Allow-Credentials": "true"}, true},
		{"simple, other origin", "GET", "/full", headers{"Origin": "https://foobar.com"}, headers{"Allow-Origin": "-"}, true},
		{"no origin", "GET", "/full", headers{}, headers{"Allow-Origin": "-"}, true},
		{"any method", "OPTIONS", "/methods", headers{"Origin": "https://www.foo.com", "Access-Control-Request-Method": "POST"}, headers{
			"Allow-Origin": "https://www.foo.com", "Allow-Methods": "POST|*", "Allow-Credentials": "-", "Max-Age": "5",
		}, false},
		{"any origin", "OPTIONS", "/origin", headers{"Origin": "https://foobar.com:12345", "Access-Control-Request-Method": "PUT"}, headers{
			"Allow-Origin": "https://foobar.com:12345|*", "Allow-Methods": "PUT", "Allow-Credentials": "-",
		}, false},
		{"any origin, simple", "PUT", "/origin", headers{"Origin": "https://foobar.com:12345"}, headers{"Allow-Origin": "https://foobar.com:12345|*", "Allow-Credentials": "-"}, true},
		{"any host", "GET", "/hosts", headers{"Origin": "https://foobar.com"}, headers{"Allow-Origin": "https://foobar.com"}, true},
		{"any host, IPv6", "GET", "/hosts", headers{"Origin": "https://[::1]"}, headers{"Allow-Origin": "https://[::1]"}, true},
		{"any host, scheme", "GET", "/hosts", headers{"Origin": "http://foobar.com"}, headers{"Allow-Origin": "-"}, true},
		{"all, credentials", "OPTIONS", "/all-credentials", headers{"Origin": "https://other.foo.com", "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-header-1, x-header-2"}, headers{
			"Allow-Origin": "https://other.foo.com", "Allow-Methods": "PUT", "Allow-Headers": "x-header-1, x-header-2", "Allow-Credentials": "true",
		}, false},
		{"all, credentials, no headers asked", "OPTIONS", "/all-credentials", headers{"Origin": "https://other.foo.com", "Access-Control-Request-Method": "PUT"}, headers{
			"Allow-Origin": "https://other.foo.com", "Allow-Methods": "PUT", "Allow-Headers": "-",
		}, false},
		{"all", "OPTIONS", "/all", headers{"Origin": "https://other.foo.com", "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-header-1, x-header-2"}, headers{
			"Allow-Origin": "https://other.foo.com|*", "Allow-Methods": "PUT|*", "Allow-Headers": "x-header-1, x-header-2|*", "Allow-Credentials": "-",
		}, false},
		{"all, credentials, simple", "GET", "/all-credentials", headers{"Origin": "https://other.foo.com"}, headers{"Allow-Origin": "https://other.foo.com", "Allow-Credentials": "true"}, true},
		{"off", "OPTIONS", "/off", headers{"Origin": "https://www.foo.com", "Access-Control-Request-Method": "GET"}, headers{"Allow-Origin": "-"}, true},
		{"an ordinary OPTIONS", "OPTIONS", "/full", headers{}, headers{"Allow-Origin": "-"}, true},
	} {
		h := http.Header{}
		for k, v := range c.request {
			h.Set(k, v)
		}
		a := r.do(t, c.method, "http://a.example"+c.path, h, nil)
		if a.Status != 200 || (a.Seen.Backend != "") != c.forwarded {
			t.Errorf("%s: %d by backend %q", c.name, a.Status, a.Seen.Backend)
		}
		for k, want := range c.want {
			got := a.Header.Get("Access-Control-" + k)
			if got == "" {
				got = "-"
			}
			if !strings.Contains("|"+want+"|", "|"+got+"|") {
				t.Errorf("%s: %s is %q, want %q", c.name, k, got, want)
			}
		}
	}
}

// flaky fails a number of times for each value of the parameter id.
type flaky struct {
	mu    sync.Mutex
	tries map[string]int
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var fail, code, delay int
	_, _ = fmt.Sscan(q.Get("fail"), &fail)
	_, _ = fmt.Sscan(q.Get("code"), &code)
	_, _ = fmt.Sscan(q.Get("delay"), &delay)
	f.mu.Lock()
	f.tries[r.RequestURI]++
	n := f.tries[r.RequestURI]
	f.mu.Unlock()
	if n > fail {
		return
	}
	select {
	case <-time.After(time.Duration(delay) * time.Millisecond):
	case <-r.Context().Done():
	}
	w.WriteHeader(code)
}

func (f *flaky) count(uri string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries[uri]
}

func TestEnvoyRetry(t *testing.T) {
	f := &flaky{tries: map[string]int{}}
	b, own, dead := newBackend(t, "flaky", ir.HTTP1, f), newBackend(t, "own", ir.HTTP1, f), newBackend(t, "dead", ir.HTTP1, f)
	own.ir.Settings.OwnRetries, dead.ir.Settings.OwnRetries = true, true
	refused := uint16(port.OfTest(t))
	dead.eps.Endpoints = append(dead.eps.Endpoints, ir.Endpoint{Address: "127.0.0.1", Port: refused})
	rule := func(path string, retry *ir.Retry, timeouts *ir.Timeouts) *ir.Rule {
		r := &ir.Rule{Match: prefix(path), Backends: to(b), Retry: retry, Timeouts: timeouts}
		if retry != nil {
			r.Backends = to(own)
		}
		return r
	}
	broken := rule("/broken", &ir.Retry{Attempts: 3}, nil)
	broken.Backends = to(dead)
	r := plain(rulesOn("*",
		rule("/codes", &ir.Retry{Attempts: 3, StatusCodes: []uint32{500, 503}}, nil),
		rule("/none", &ir.Retry{StatusCodes: []uint32{500}}, nil),
		rule("/plain", nil, nil),
		rule("/backoff", &ir.Retry{Attempts: 1, StatusCodes: []uint32{500}, Backoff: new(200 * time.Millisecond)}, nil),
		rule("/request", &ir.Retry{Attempts: 5, StatusCodes: []uint32{500}}, &ir.Timeouts{Request: new(1 * time.Second)}),
		rule("/backend", &ir.Retry{Attempts: 3, StatusCodes: []uint32{500}}, &ir.Timeouts{Backend: new(500 * time.Millisecond), Request: new(15 * time.Second)}),
		rule("/long-request", &ir.Retry{Attempts: 5, StatusCodes: []uint32{500}}, &ir.Timeouts{Request: new(time.Minute)}),
		rule("/long-backend", &ir.Retry{Attempts: 3, StatusCodes: []uint32{500}}, &ir.Timeouts{Backend: new(20 * time.Second), Request: new(time.Minute)}),
		rule("/only-request", nil, &ir.Timeouts{Request: new(200 * time.Millisecond)}),
		rule("/only-backend", nil, &ir.Timeouts{Backend: new(200 * time.Millisecond)}),
		rule("/zero-retry-backend", &ir.Retry{Attempts: 0, StatusCodes: []uint32{500}}, &ir.Timeouts{Backend: new(200 * time.Millisecond)}),
		rule("/disabled", nil, &ir.Timeouts{Request: new(time.Duration(0)), Backend: new(time.Duration(0))}),
		broken,
	), b, own, dead).start(t)
	for _, c := range []struct {
		uri           string
		status, tries int
	}{
		{"/codes?code=500&fail=0", 200, 1},
		{"/codes?code=500&fail=2", 200, 3},
		{"/codes?code=503&fail=3", 200, 4},
		{"/codes?code=500&fail=9", 500, 4},
		{"/codes?code=502&fail=1", 502, 1},
		{"/none?code=500&fail=1", 500, 1},
		{"/plain?code=503&fail=1", 503, 1},
		{"/long-request?code=500&fail=2&delay=20", 200, 3},
		{"/request?code=500&fail=2&delay=20000", 504, 1},
		{"/long-backend?code=500&fail=2&delay=20", 200, 3},
		{"/backend?code=500&fail=2&delay=20", 200, 3},
		{"/backend?code=500&fail=2&delay=20001", 504, 1},
		{"/only-request?code=200&fail=1&delay=20000", 504, 1},
		{"/only-backend?code=200&fail=1&delay=20000", 504, 1},
		{"/zero-retry-backend?code=200&fail=1&delay=20000", 504, 1},
		{"/zero-retry-backend?code=500&fail=1", 500, 1},
		{"/disabled?code=204&fail=1&delay=300", 204, 1},
	} {
		began := time.Now()
		a := r.get(t, "http://a.example"+c.uri)
		if got := f.count(c.uri); a.Status != c.status || got != c.tries {
			t.Errorf("%s: %d after %d tries, want %d after %d", c.uri, a.Status, got, c.status, c.tries)
		}
		if took := time.Since(began); took >= 20*time.Second { // it has not been cut
			t.Errorf("%s took %v", c.uri, took)
		}
	}
	for i := range 50 {
		if a := r.get(t, fmt.Sprintf("http://a.example/broken?%d", i)); a.Status != 200 {
			t.Fatalf("with one endpoint of two dead: %d", a.Status)
		}
	}
	// A client must not be able to set what the route says.
	h := http.Header{
		"X-Envoy-Max-Retries": {"5"}, "X-Envoy-Retry-On": {"5xx"}, "X-Envoy-Upstream-Rq-Timeout-Ms": {"1"},
		"X-Envoy-Original-Path": {"/x"},
	}
	const uri = "/plain?code=503&fail=1&delay=50&client"
	if a := r.do(t, "GET", "http://a.example"+uri, h, nil); a.Status != 503 || f.count(uri) != 1 {
		t.Errorf("with x-envoy headers of a client: %d after %d tries", a.Status, f.count(uri))
	}
	// A large body is sent again too.
	const post = "/codes?code=500&fail=2&post"
	if a := r.do(t, "POST", "http://a.example"+post, nil, bytes.Repeat([]byte("x"), 500<<10)); a.Status != 200 || f.count(post) != 3 {
		t.Errorf("a large body: %d after %d tries", a.Status, f.count(post))
	}
	if a := r.get(t, "http://a.example/backoff?code=500&fail=1"); a.Status != 200 {
		t.Errorf("backoff: %d", a.Status)
	}
}

func TestEnvoyProtocols(t *testing.T) {
	h2, h1 := newBackend(t, "h2", ir.H2C, nil), newBackend(t, "h1", ir.HTTP1, nil)
	local := newBackend(t, "local", ir.HTTP1, nil)
	local.ir.DNS, local.ir.Port = "localhost", int32(local.eps.Endpoints[0].Port)
	empty := newBackend(t, "empty", ir.HTTP1, nil)
	empty.eps.Endpoints = nil
	draining := newBackend(t, "draining", ir.HTTP1, nil)
	draining.eps.Endpoints = append(draining.eps.Endpoints, h1.eps.Endpoints[0])
	draining.eps.Endpoints[0].Draining = true
	last := newBackend(t, "last", ir.HTTP1, nil)
	last.eps.Endpoints[0].Draining = true
	r := plain(append(rulesOn("a.example",
		&ir.Rule{Match: prefix("/h2"), Backends: to(h2)},
		&ir.Rule{Match: prefix("/h1"), Backends: to(h1)},
		&ir.Rule{Match: prefix("/local"), Backends: to(local)},
		&ir.Rule{Match: prefix("/empty"), Backends: to(empty)},
		&ir.Rule{Match: prefix("/draining"), Backends: to(draining)},
		&ir.Rule{Match: prefix("/last"), Backends: to(last)},
	), &ir.Host{Domain: "b.example", Misdirected: true}), h2, h1, local, empty, draining, last).start(t)
	for _, c := range []struct{ url, want string }{
		{"a.example/h2", "200 h2 HTTP/2.0"}, {"a.example/h1", "200 h1 HTTP/1.1"},
		{"a.example/local", "200 local HTTP/1.1"},
		{"a.example/empty", "503  "},
		{"a.example/draining", "200 h1 HTTP/1.1"}, {"a.example/last", "200 last HTTP/1.1"},
		{"a.example/other", "404  "}, {"b.example/", "421  "}, {"c.example/", "404  "},
	} {
		a := r.get(t, "http://"+c.url)
		if got := fmt.Sprint(a.Status, " ", a.Seen.Backend, " ", a.Seen.Proto); got != c.want {
			t.Errorf("%s: %s, want %s", c.url, got, c.want)
		}
		if got := a.Header.Values("Server"); got != nil {
			t.Errorf("%s: Server %q", c.url, got)
		}
	}
	// HTTP/2 without TLS, on the same port.
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: p}
	defer tr.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+r.addrs["http-80"]+"/h1", nil)
	req.Host = "a.example"
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.StatusCode != 200 {
		t.Errorf("h2c client: %s %d", resp.Proto, resp.StatusCode)
	}
}

func TestEnvoyWebSocket(t *testing.T) {
	// Enough of a server: it switches protocols and echoes bytes.
	b := newBackend(t, "ws", ir.WebSocket, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + r.Header.Get("Upgrade") + "\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString("echo " + line)
		_ = rw.Flush()
	}))
	r := plain(rulesOn("*", &ir.Rule{Match: prefix("/"), Backends: to(b), Timeouts: &ir.Timeouts{Request: new(100 * time.Millisecond)}}), b).start(t)
	conn, err := net.Dial("tcp", r.addrs["http-80"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%d", resp.StatusCode)
	}
	fmt.Fprint(conn, "hello\n")
	line, err := in.ReadString('\n')
	if diff := cmp.Diff("echo hello\n", line); diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
