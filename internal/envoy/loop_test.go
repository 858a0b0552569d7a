package envoy

import (
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

// looping serves one host whose backend, which speaks a protocol, is the listener itself.
func looping(t *testing.T, protocol ir.Protocol, change func(r *ir.Rule, self ir.BackendKey)) *running {
	t.Helper()
	own := uint16(port.OfTest(t)) //nolint:gosec // a port
	self := &ir.Backend{Named: "default/self:80", Protocol: protocol, Port: 80}
	rule := &ir.Rule{Match: prefix("/"), Backends: []ir.WeightedBackend{{Backend: self.Key(), Weight: 1}}}
	change(rule, self.Key())
	s := plain(rulesOn("*", rule))
	s.listeners[0].BindPort, s.listeners[0].Hop = own, "0123456789abcdef"
	s.backends = append(s.backends, self)
	s.endpoints = append(s.endpoints, &ir.Endpoints{Backend: self.Key(), Endpoints: []ir.Endpoint{{Address: "127.0.0.1", Port: own}}})
	return s.start(t)
}

// TestEnvoyEndsLoops protects a Gateway from routes that lead back to it: each request
// would make connections to itself until there are no more.
func TestEnvoyEndsLoops(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *ir.Rule, self ir.BackendKey){
		"a backend": func(*ir.Rule, ir.BackendKey) {},
		"mirrors": func(r *ir.Rule, self ir.BackendKey) {
			for range 4 {
				r.Filters.Mirrors = append(r.Filters.Mirrors, ir.Mirror{Backend: self, Numerator: 1, Denominator: 1})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := looping(t, ir.HTTP1, change)
			for _, header := range []http.Header{nil, {"X-Gatehouse-Hop": {"x", "y"}}} {
				if a := e.do(t, http.MethodGet, "http://a.example/", header, nil); a.Status != http.StatusLoopDetected {
					t.Errorf("with header %v: %d %s", header, a.Status, a.Body)
				}
			}
			// Two requests, each of which passes twice and is refused once, and their copies.
			eventually(t, "the copies to end", func() bool { return e.stat(t, "http.http-80.downstream_rq_active") == 0 })
			if n := e.stat(t, "http.http-80.downstream_rq_total"); n > 2*(3+2*4) {
				t.Errorf("2 requests made %d", n)
			}
		})
	}
}

// TestEnvoyEndsLoopsOfAuth protects it from authorization services that are routes of
// the same Gateway.
func TestEnvoyEndsLoopsOfAuth(t *testing.T) {
	t.Parallel()
	for name, grpc := range map[string]bool{"HTTP": false, "gRPC": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			protocol := ir.HTTP1
			if grpc {
				protocol = ir.H2C
			}
			e := looping(t, protocol, func(r *ir.Rule, self ir.BackendKey) {
				r.Filters.Auth = &ir.Auth{Backend: self, GRPC: grpc, Authority: "auth"}
			})
			if a := e.get(t, "http://a.example/"); a.Status < 400 {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			eventually(t, "the checks to end", func() bool { return e.stat(t, "http.http-80.downstream_rq_active") == 0 })
			if n := e.stat(t, "http.http-80.downstream_rq_total"); n > 3 {
				t.Errorf("one request made %d", n)
			}
		})
	}
}

// TestEnvoyPassesHops protects applications that call their own Gateway, with the headers
// that they got, and chains of Gateways.
func TestEnvoyPassesHops(t *testing.T) {
	t.Parallel()
	b := newBackend(t, "b", ir.HTTP1, nil)
	s := plain(rulesOn("*", &ir.Rule{Match: prefix("/"), Backends: to(b)}), b)
	s.listeners[0].Hop = "0123456789abcdef"
	e := s.start(t)
	for hops, want := range map[string]int{
		"":                                    http.StatusOK,
		"fedcba9876543210 fedcba9876543210":   http.StatusOK,
		"- 0123456789abcdef":                  http.StatusOK,
		"- 0123456789abcdef 0123456789abcdef": http.StatusLoopDetected,
	} {
		a := e.do(t, http.MethodGet, "http://a.example/", http.Header{"X-Gatehouse-Hop": {hops}}, nil)
		if a.Status != want {
			t.Errorf("%q: %d, want %d", hops, a.Status, want)
		}
	}
}
