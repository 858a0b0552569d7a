//go:build linux

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"
)

// steady is a client that behaves: one request at a time, each over a connection
// of its own, with TLS and without in turn.
type steady struct {
	stop context.CancelFunc
	done sync.WaitGroup
	sent int
	err  error // the first
}

// steadyPause is the time between two requests.
const steadyPause = 10 * time.Millisecond

// beside runs a test while a client that behaves goes on, which must not notice.
func (s *site) beside(t *testing.T, attack func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &steady{stop: cancel}
	c.done.Go(func() { c.run(ctx, s.address) })
	attack()
	c.stop()
	c.done.Wait()
	if c.err != nil {
		t.Errorf("a client that behaves, after %d requests: %v", c.sent, c.err)
	}
}

func (c *steady) run(ctx context.Context, address string) {
	// It goes on for some requests after the attack, which on a busy machine may be over
	// before the client is on its way.
	for after := 0; after < 10 && c.err == nil; {
		if ctx.Err() != nil {
			after++
		}
		scheme := "http"
		if c.sent%2 == 1 {
			scheme = "https"
		}
		call := &clientCall{method: http.MethodGet, url: &url.URL{Scheme: scheme, Host: "home.example", Path: "/"}, address: address}
		// Not with ctx: what has begun is to end well.
		out, err := call.do(context.WithoutCancel(ctx))
		switch {
		case err != nil:
			c.err = fmt.Errorf("%s: %w", scheme, err)
		case out.status != http.StatusOK:
			c.err = fmt.Errorf("%s: status %d", scheme, out.status)
		case out.took > 5*time.Second:
			c.err = fmt.Errorf("%s: an answer after %s", scheme, out.took)
		}
		c.sent++
		time.Sleep(steadyPause)
	}
}
