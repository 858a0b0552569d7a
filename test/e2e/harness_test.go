//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
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

// directEcho starts an echo server where a call to the returned address with a
// URL of port 80 arrives.
func directEcho(t *testing.T) string {
	t.Helper()
	address := newAddress()
	s, err := echo.New(t.Context(), echo.Options{Name: "v1", Listen: []string{net.JoinHostPort(address, fmt.Sprint(80+portOffset))}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return address
}

// steps parses steps that are sent to address.
func parseSteps(t *testing.T, address, text string) []step {
	t.Helper()
	var steps []step
	if err := yaml.UnmarshalStrict([]byte(text), &steps); err != nil {
		t.Fatal(err)
	}
	for i := range steps {
		if err := steps[i].prepare(&testCase{}, newBindings(t, "direct", address)); err != nil {
			t.Fatal(err)
		}
	}
	return steps
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
`) {
		t.Run(s.title(), func(t *testing.T) {
			if err := s.try(t.Context(), "fail"); err == nil {
				t.Errorf("%+v holds", *s.Expect)
			}
		})
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
