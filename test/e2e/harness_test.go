//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// The tests of this file protect the harness itself and need no gatehouse.

// TestCasesAreWellFormed reads all cases, so that a slip in one shows without
// starting anything.
func TestCasesAreWellFormed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			c, err := parseCase(file, newBindings(t, name, "127.0.0.1"))
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range c.files {
				for i, doc := range strings.Split(text, "\n---\n") {
					var object struct {
						Kind     string
						Metadata struct{ Name string }
					}
					if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
						t.Errorf("%s, document %d: %v\n%s", name, i+1, err, doc)
					}
					if strings.Trim(doc, "-\n ") != "" && (object.Kind == "" || object.Metadata.Name == "") {
						t.Errorf("%s, document %d has no kind or name:\n%s", name, i+1, doc)
					}
				}
			}
		})
	}
}

// directEcho starts backends where a call to the returned address arrives with
// these ports: HTTP and gRPC on 80, HTTPS on 443, and with a client's certificate
// on 444, lines on 9000, in TLS on 8443, datagrams on 5353. On 9001 and 9002 are
// those that close a connection and that leave it unanswered, on 9004 one that
// answers and closes without goodbye, on 5354 one that answers no datagram.
func directEcho(t *testing.T) string {
	t.Helper()
	address := newAddress()
	at := func(port int) string { return net.JoinHostPort(address, fmt.Sprint(port+portOffset)) }
	const host = "direct.test"
	for port, kind := range map[int]backendKind{
		80: httpBackend, 443: httpsBackend, 444: mtlsBackend, 9000: tcpBackend, 8443: tlsBackend, 5353: udpBackend,
	} {
		o := echo.Options{Name: "v1", Listen: []string{at(port)}}
		var err error
		if kind.tls != nil {
			if o.TLS, err = kind.tls(o.Name, host); err != nil {
				t.Fatal(err)
			}
			if port == 8443 {
				o.TLS.NextProtos = []string{"line"}
			}
		}
		s, err := kind.listen(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-done })
	}
	var lc net.ListenConfig
	for port, answer := range map[int]string{9001: "", 9004: "v1: hello\n"} {
		closing, err := lc.Listen(t.Context(), "tcp", at(port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = closing.Close() })
		go func() {
			for {
				conn, err := closing.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		}()
	}
	occupy(t, at(9002))
	mute, err := lc.ListenPacket(t.Context(), "udp", at(5354))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	return address
}

// parseSteps parses steps that are sent to address.
func parseSteps(t *testing.T, address, text string) []step {
	t.Helper()
	c := &testCase{}
	if err := yaml.UnmarshalStrict([]byte(text), &c.steps); err != nil {
		t.Fatal(err)
	}
	for i := range c.steps {
		if err := c.steps[i].prepare(c, newBindings(t, "direct", address)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { closeSessions(c.steps) })
	return c.steps
}

// TestExpectationsHold protects against a harness that sees errors where there
// are none.
func TestExpectationsHold(t *testing.T) {
	for _, s := range parseSteps(t, directEcho(t), `
- {request: "GET /a/b?c=d", headers: {X-One: "1"}, expect: {backend: v1, method: GET, host: direct.test, path: /a/b, query: c=d, proto: HTTP/1.1, seen: {X-One: "1", X-Two: null}}}
- {request: "GET /?header=X-List:b,a", expect: {headers: {X-List: "a, b", X-None: null}}}
- {request: "POST /", body: hello, http2: true, expect: {backend: v1, body: hello, proto: HTTP/2.0}}
- {request: "GET /?status=302&header=Location:https://example.org:8443/x?y=z", expect: {status: 302, redirect: {scheme: https, host: example.org, port: ["8443"], path: /x, query: "y=z"}}}
- {request: "GET /", headers: {Host: "other.test:99"}, expect: {host: "other.test:99"}}
- {request: "GET /?delay=30ms", expect: {atLeast: 30ms, within: 5s}}
- {request: "GET /", websocket: hello, expect: {backend: v1, body: hello}}
- {request: "GET /", count: 20, expect: {share: {v1: 100}}}
- {request: "GET /?status=500", count: 5, expect: {share: {"500": 100}}}
- {request: "GET http://direct.test:81/", expect: {failure: true}}
- {request: "GET https://direct.test/", expect: {certificate: direct.test, tls: {sni: direct.test, alpn: "", peer: ""}}}
- {request: "GET https://direct.test/", sni: "", expect: {tls: {sni: ""}}}
- {request: "GET https://direct.test/", clientCertificate: joe, http2: true, expect: {tls: {peer: CN=joe, alpn: h2}}}
- {request: "GET https://direct.test/", clientCertificate: "other:eve", expect: {tls: {peer: CN=eve}}}
- {request: "GET https://direct.test:444/", clientCertificate: joe, expect: {tls: {peer: CN=joe}}}
- {request: "GET https://direct.test:444/", clientCertificate: "other:eve", expect: {failure: true}}
- {request: "GET https://direct.test:444/", expect: {failure: true}}
- {request: "GET https://direct.test/a", http2: true, expect: {host: direct.test}}
- {request: "GET https://other.test/b", reuse: true, expect: {host: other.test, path: /b, tls: {sni: direct.test}, certificate: direct.test}}
- {request: "GET https://third.test/", reuse: true, expect: {host: third.test, tls: {sni: direct.test}}}
- {grpc: a.B/C, body: hello, metadata: {x-one: "1"}, expect: {backend: v1, host: direct.test, path: /a.B/C, body: hello, seen: {X-One: "1", X-Two: null}}}
- {grpc: a.B/C, host: other.test, metadata: {echo-header: "X-Back: yes"}, expect: {host: other.test, headers: {X-Back: "yes"}}}
- {grpc: a.B/C, metadata: {echo-code: UNAVAILABLE}, expect: {code: UNAVAILABLE}}
- {grpc: a.B/C, tls: true, sni: a.test, clientCertificate: joe, expect: {host: direct.test, tls: {sni: a.test, alpn: h2, peer: CN=joe}, certificate: direct.test}}
- {grpc: a.B/C, tls: true, port: 444, expect: {failure: true}}
- {grpc: a.B/C, port: 81, expect: {failure: true}}
- {grpc: a.B/C, count: 20, expect: {share: {v1: 100}}}
- {grpc: a.B/C, metadata: {echo-code: ABORTED}, count: 5, expect: {share: {ABORTED: 100}}}
- {tcp: 9000, expect: {backend: v1}}
- {tcp: 9000, send: "one\ntwo", finish: true, expect: {backend: v1, reply: "one\ntwo"}}
- {tcp: 9000, finish: true, count: 20, expect: {share: {v1: 100}}}
- {tcp: 9001, expect: {closed: true}}
- {tcp: 9004, expect: {backend: v1, within: 5s}}
- {grpc: a.B/C, metadata: {echo-delay: 30ms}, expect: {atLeast: 30ms}}
- {tcp: 9001, count: 5, expect: {share: {closed: 100}}}
- {tcp: 9003, expect: {failure: true}}
- {tls: 8443, sni: a.direct.test, alpn: [line], finish: true, expect: {backend: v1, certificate: v1.direct.test, tls: {sni: a.direct.test, alpn: line}}}
- {tls: 8443, expect: {certificate: "*.direct.test", tls: {sni: direct.test}}}
- {tls: 8443, sni: "", count: 5, expect: {share: {v1: 100}}}
- {tls: 8443, alpn: [other], expect: {failure: true}}
- {tls: 9001, expect: {failure: true}}
- {tls: 444, expect: {failure: true}}
- {tls: 444, clientCertificate: "other:eve", expect: {failure: true}}
- {udp: 5353, expect: {backend: v1}}
- {udp: 5353, send: x, expect: {backend: v1, reply: x}}
- {udp: 5353, count: 20, expect: {share: {v1: 100}}}
- {udp: 5354, expect: {none: true}}
- {udp: 5354, count: 5, expect: {share: {none: 100}}}
- {udp: 5355, expect: {failure: true}}
`) {
		t.Run(s.title(), func(t *testing.T) {
			if err := s.try(t.Context(), "hold"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestExpectationsFail protects against a harness that sees nothing.
func TestExpectationsFail(t *testing.T) {
	slow.Skip(t)
	for _, s := range parseSteps(t, directEcho(t), `
- {request: "GET /", expect: {status: 404}}
- {request: "GET /", expect: {backend: v2}}
- {request: "GET /", expect: {path: /x}}
- {request: "GET /", expect: {query: a=b}}
- {request: "GET /", expect: {host: example.org}}
- {request: "GET /", expect: {proto: HTTP/2.0}}
- {request: "GET /", expect: {seen: {X-One: "1"}}}
- {request: "GET /", headers: {X-One: "1"}, expect: {seen: {X-One: null}}}
- {request: "GET /?header=X-One:2", expect: {headers: {X-One: ["1", "3"]}}}
- {request: "GET /", expect: {redirect: {path: /x}}}
- {request: "GET /?delay=30ms", expect: {within: 10ms}}
- {request: "GET /", expect: {atLeast: 5s}}
- {request: "GET /", expect: {failure: true}}
- {request: "GET /", expect: {certificate: a.example}}
- {request: "GET /", count: 10, expect: {share: {v1: 50, v2: 50}}}
- {request: "GET /", expect: {arrived: {elsewhere: 1}}}
- {request: "GET http://direct.test:81/", expect: {}}
- {request: "GET /", expect: {tls: {}}}
- {request: "GET https://direct.test/", expect: {tls: {sni: other.test}}}
- {request: "GET https://direct.test/", expect: {tls: {alpn: h2}}}
- {request: "GET https://direct.test/", expect: {tls: {peer: CN=joe}}}
- {request: "GET https://direct.test/", clientCertificate: joe, expect: {tls: {peer: ""}}}
- {request: "GET https://direct.test:444/", clientCertificate: "other:joe", expect: {}}
- {request: "GET https://direct.test:444/", clientCertificate: joe, expect: {failure: true}}
- {request: "GET https://direct.test/", http2: true, expect: {}, at: 127.0.0.1}
- {request: "GET https://other.test/", reuse: true, expect: {}}
- {request: "GET https://direct.test/", http2: true, expect: {backend: v2}}
- {request: "GET https://other.test/", reuse: true, expect: {tls: {sni: other.test}}}
- {grpc: a.B/C, expect: {backend: v2}}
- {grpc: a.B/C, expect: {host: other.test}}
- {grpc: a.B/C, expect: {path: /a.B/D}}
- {grpc: a.B/C, expect: {body: hello}}
- {grpc: a.B/C, expect: {seen: {X-One: "1"}}}
- {grpc: a.B/C, expect: {headers: {X-Back: "yes"}}}
- {grpc: a.B/C, expect: {code: UNAVAILABLE}}
- {grpc: a.B/C, expect: {failure: true}}
- {grpc: a.B/C, metadata: {echo-code: UNAVAILABLE}, expect: {}}
- {grpc: a.B/C, port: 81, expect: {code: UNAVAILABLE}}
- {grpc: a.B/C, port: 443, expect: {}}
- {grpc: a.B/C, metadata: {Content-Type: text/plain}, expect: {}}
- {grpc: a.B/C, tls: true, port: 444, expect: {}}
- {grpc: a.B/C, count: 10, expect: {share: {v2: 100}}}
- {tcp: 9000, expect: {backend: v2}}
- {tcp: 9000, expect: {reply: other}}
- {tcp: 9000, expect: {closed: true}}
- {tcp: 9000, expect: {failure: true}}
- {tcp: 9000, expect: {tls: {}}}
- {tcp: 9000, count: 10, expect: {share: {v1: 50, closed: 50}}}
- {tcp: 80, send: "GET / HTTP/1.0\n", expect: {}}
- {tcp: 80, send: "GET / HTTP/1.0\n", expect: {failure: true}}
- {tls: 443, send: "GET / HTTP/1.0\n", expect: {failure: true}}
- {tcp: 9001, expect: {}}
- {tcp: 9001, finish: true, expect: {}}
- {tcp: 9004, finish: true, expect: {}}
- {tcp: 9000, expect: {atLeast: 5s}}
- {grpc: a.B/C, metadata: {echo-delay: 30ms}, expect: {within: 10ms}}
- {tcp: 9001, expect: {failure: true}}
- {tcp: 9003, expect: {}}
- {tcp: 9003, expect: {closed: true}}
- {tls: 8443, expect: {backend: v2}}
- {tls: 8443, expect: {certificate: other.test}}
- {tls: 8443, expect: {tls: {sni: other.test}}}
- {tls: 8443, expect: {failure: true}}
- {tls: 8443, expect: {closed: true}}
- {tls: 9001, expect: {}}
- {tls: 444, expect: {closed: true}}
- {udp: 5353, expect: {backend: v2}}
- {udp: 5353, expect: {reply: other}}
- {udp: 5353, expect: {none: true}}
- {udp: 5353, expect: {failure: true}}
- {udp: 5353, count: 10, expect: {share: {v1: 50, none: 50}}}
- {udp: 5354, expect: {failure: true}}
- {udp: 5354, count: 10, expect: {share: {v1: 50, none: 50}}}
- {udp: 5355, expect: {none: true}}
`) {
		t.Run(s.title(), func(t *testing.T) {
			if err := s.try(t.Context(), "fail"); err == nil {
				t.Errorf("%+v holds", *s.Expect)
			}
		})
	}
}

// TestHangingIsNoFailure protects against a listener that takes a connection and
// never answers, which neither is a refusal nor a close.
func TestHangingIsNoFailure(t *testing.T) {
	address := directEcho(t)
	for _, s := range parseSteps(t, address, `
- {tcp: 9002, expect: {failure: true}}
- {tcp: 9002, expect: {closed: true}}
- {tls: 9002, expect: {failure: true}}
- {request: "GET http://direct.test:9002/", expect: {failure: true}}
- {grpc: a.B/C, port: 9002, expect: {failure: true}}
`) {
		t.Run(s.title(), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), silence)
			defer cancel()
			if err := s.try(ctx, "hang"); err == nil {
				t.Errorf("%+v holds", *s.Expect)
			}
		})
	}
}

// TestStepsAreRefused protects against steps that say what nobody looks at.
func TestStepsAreRefused(t *testing.T) {
	for _, text := range []string{
		"{}",
		"{count: 3}",
		"{tls: true, expect: {}}",
		"{tls: 0, expect: {}}",
		"{tcp: 1, udp: 2, expect: {}}",
		"{tcp: 1}",
		"{tcp: 1, sni: a, expect: {}}",
		"{tcp: 1, expect: {status: 200}}",
		"{tcp: 1, expect: {certificate: a}}",
		"{tcp: 1, expect: {closed: true, backend: v1}}",
		"{tcp: 1, finish: true, expect: {closed: true}}",
		"{tcp: 1, count: 3, expect: {}}",
		"{tcp: 1, expect: {share: {v1: 100}}}",
		"{udp: 1, finish: true, expect: {}}",
		"{udp: 1, expect: {none: true, reply: x}}",
		"{grpc: a.B, expect: {}}",
		"{grpc: a.B/C, sni: a, expect: {}}",
		"{grpc: a.B/C, host: a:1, port: 2, expect: {}}",
		"{grpc: a.B/C, expect: {code: Unavailable}}",
		"{grpc: a.B/C, expect: {status: 200}}",
		"{request: GET /, expect: {code: OK}}",
		"{request: GET /, expect: {failure: true, backend: v1}}",
		"{request: GET /, reuse: true, expect: {}}",
		"{conditions: Gateway a, expect: {backend: v1}}",
		"{conditions: Gateway a, count: 3}",
	} {
		c := &testCase{}
		if err := yaml.UnmarshalStrict([]byte("- "+text), &c.steps); err != nil {
			continue
		}
		if err := c.steps[0].prepare(c, newBindings(t, "direct", "127.0.0.1")); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// TestStatusParts protects what steps see of statuses of every shape.
func TestStatusParts(t *testing.T) {
	var report statusReport
	err := yaml.Unmarshal([]byte(`
items:
- kind: GatewayClass
  metadata: {name: c}
  status: {conditions: [{type: Accepted, status: "True"}], supportedFeatures: [{name: HTTPRoute}, {name: GRPCRoute}]}
- kind: GRPCRoute
  metadata: {name: r, namespace: space}
  status:
    parents:
    - {parentRef: {kind: Gateway, name: gw, sectionName: a}, conditions: [{type: Accepted, status: "True", reason: Accepted}]}
    - {parentRef: {kind: ListenerSet, name: gw, port: 80}, conditions: [{type: Accepted, status: "False", reason: NotAllowed}]}
- kind: ListenerSet
  metadata: {name: s, namespace: space}
  status: {conditions: [{type: Accepted, status: "True"}], listeners: [{name: l, attachedRoutes: 2, supportedKinds: [{kind: HTTPRoute}], conditions: [{type: Programmed, status: "True"}]}]}
- kind: BackendTLSPolicy
  metadata: {name: p, namespace: space}
  status: {ancestors: [{ancestorRef: {kind: Gateway, name: gw}, conditions: [{type: Accepted, status: "False", reason: Conflicted}]}]}
`), &report)
	if err != nil {
		t.Fatal(err)
	}
	for text, holds := range map[string]bool{
		"{conditions: GatewayClass c, are: [Accepted=True], features: [GRPCRoute, HTTPRoute]}":                true,
		"{conditions: GatewayClass c, features: [TCPRoute]}":                                                  false,
		"{conditions: GRPCRoute r, of: gw/a, are: [Accepted=True/Accepted], parents: 2}":                      true,
		"{conditions: GRPCRoute r, of: gw/a, are: [Accepted=False]}":                                          false,
		"{conditions: GRPCRoute r, of: ListenerSet gw, are: [Accepted=False/NotAllowed]}":                     true,
		"{conditions: GRPCRoute r, of: \"ListenerSet gw:80\", are: [Accepted=False/NotAllowed]}":              true,
		"{conditions: GRPCRoute r, of: ListenerSet gw, are: [Accepted=True]}":                                 false,
		"{conditions: GRPCRoute r, of: gw/b, are: [Accepted=True]}":                                           false,
		"{conditions: GRPCRoute r, of: gw/a, attached: 0}":                                                    false,
		"{conditions: ListenerSet s, are: [Accepted=True], listeners: [l]}":                                   true,
		"{conditions: ListenerSet s, of: l, are: [Programmed=True], attached: 2, kinds: [HTTPRoute]}":         true,
		"{conditions: ListenerSet s, of: l, attached: 1}":                                                     false,
		"{conditions: ListenerSet s, of: l, kinds: [GRPCRoute]}":                                              false,
		"{conditions: BackendTLSPolicy space/p, of: gw, are: [Accepted=False/Conflicted, \"!ResolvedRefs\"]}": true,
		"{conditions: BackendTLSPolicy space/p, of: gw, are: [Accepted=True]}":                                false,
		"{conditions: BackendTLSPolicy other/p, of: gw, are: [Accepted=False]}":                               false,
		"{conditions: BackendTLSPolicy p, of: other, are: [Accepted=False]}":                                  false,
	} {
		for _, s := range parseSteps(t, "127.0.0.1", "- "+text) {
			if err := s.checkStatus(&report, "space"); (err == nil) != holds {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// TestAmounts protects the counting of mirrored requests.
func TestAmounts(t *testing.T) {
	for _, tc := range []struct {
		text      string
		got, sent int
		ok        bool
	}{
		{"3", 3, 1, true}, {"3", 2, 1, false}, {`"20%"`, 100, 500, true}, {`"20%"`, 124, 500, true},
		{`"20%"`, 130, 500, false}, {`"0%"`, 1, 500, false}, {`"100%"`, 499, 500, false}, {`"100%"`, 500, 500, true},
	} {
		var a amount
		if err := a.UnmarshalJSON([]byte(tc.text)); err != nil {
			t.Fatal(err)
		}
		if err := a.matches(tc.got, tc.sent); (err == nil) != tc.ok {
			t.Errorf("%s of %d sent, %d arrived: %v", tc.text, tc.sent, tc.got, err)
		}
	}
}

// TestPollEnds protects the suite's time.
func TestPollEnds(t *testing.T) {
	calls := 0
	if err := poll(0, func() error { calls++; return fmt.Errorf("no") }); err == nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	calls = 0
	if err := poll(time.Minute, func() error { calls++; return permanent(fmt.Errorf("never")) }); err == nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
