//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// TestTokenLimitWithoutNumber protects that answers aren't for nothing that don't say what they cost:
// streams of clients who don't ask for it, or who end them before it comes, and answers of other types.
func TestTokenLimitWithoutNumber(t *testing.T) {
	t.Parallel()
	const event = "data: {\"choices\": [{\"delta\": \"x\"}]}\n\n"
	taken := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write := func(of, text string, n int) {
			w.Header().Set("Content-Type", of)
			for range n {
				_, _ = io.WriteString(w, text)
				w.(http.Flusher).Flush()
			}
		}
		switch r.URL.Path {
		case "/stream":
			write("text/event-stream", event, 40)
		case "/endless":
			for r.Context().Err() == nil {
				write("text/event-stream", event, 10)
			}
		case "/lines":
			write("application/x-ndjson", "{\"message\": \"x\"}\n", 10)
			write("application/x-ndjson", `{"usage": {"total_tokens": 150}}`+"\n", 1)
		case "/text":
			write("text/plain", strings.Repeat("x", 400), 10)
		case "/error":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, strings.Repeat(" ", 4000))
		case "/silent":
			_, _ = io.Copy(io.Discard, r.Body)
			taken <- struct{}{}
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	_, text, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	routes := httpBackend.leading(siteNamespace, "model", port)
	for _, name := range []string{"stream", "endless", "lines", "text", "error", "silent"} {
		routes += siteRoute(name, name+".example", "model")
	}
	s := startSite(t, map[string]string{"model.yaml": routes})
	s.write(t, "limits.yaml", limitPolicy("tokens", onGateway,
		"limits: {all: {cost: {tokens: usage.total_tokens}, rates: [{limit: 200, window: 24h}], counters: [request.host]}}"))
	s.says(t, "RateLimitPolicy tokens", "All rules of the policy are in force")

	left := func(name, want string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			if o := s.answer(t, "http://"+name+".example/nothing", "", nil); o.headers.Get("X-RateLimit-Remaining") != want {
				return fmt.Errorf("%s: %d, X-RateLimit-Remaining is %q, want %s", name, o.status, o.headers.Get("X-RateLimit-Remaining"), want)
			}
			return nil
		})
	}
	for name, want := range map[string]string{"stream": "160", "lines": "50", "text": "0", "error": "200"} {
		s.answer(t, "http://"+name+".example/"+name, "", nil)
		left(name, want)
	}

	// cut sends a request and goes before its answer has ended.
	cut := func(name string, body []byte, gone func(resp *http.Response)) int {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s:%d/%s", s.address, 80+portOffset, name), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = name + ".example"
		if gone == nil {
			go func() { <-taken; cancel() }()
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode == http.StatusOK {
			gone(resp)
		}
		return resp.StatusCode
	}
	eventually(t, siteTimeout, func() error {
		status := cut("endless", nil, func(resp *http.Response) { _, _ = io.CopyN(io.Discard, resp.Body, int64(60*len(event))) })
		if status != http.StatusTooManyRequests {
			return fmt.Errorf("who ends all streams is answered %d", status)
		}
		return nil
	})
	cut("silent", bytes.Repeat([]byte("x"), 4000), nil)
	left("silent", "0")
}
