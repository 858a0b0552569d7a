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
// of its own.
type steady struct {
	ask  func(n int) error // sends the nth request
	stop context.CancelFunc
	done sync.WaitGroup
	sent int
	err  error // the first
}

// steadyPause is the time between two requests.
const steadyPause = 10 * time.Millisecond

// steadyAnswer is the longest that an answer may take. It is no measure of speed: an attack
// that holds others up does so for as long as Envoy's timeouts, and two processors that run
// other tests too have held up an answer for 6.5 seconds.
const steadyAnswer = 10 * time.Second

// beside runs a test while a client that behaves goes on, which must not notice. It asks
// with TLS and without in turn.
func (s *site) beside(t *testing.T, attack func()) {
	t.Helper()
	beside(t, func(n int) error {
		scheme := "http"
		if n%2 == 1 {
			scheme = "https"
		}
		call := &clientCall{method: http.MethodGet, url: &url.URL{Scheme: scheme, Host: "home.example", Path: "/"}, address: s.address}
		out, err := call.do(context.Background())
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", scheme, err)
		case out.status != http.StatusOK:
			return fmt.Errorf("%s: status %d", scheme, out.status)
		}
		return nil
	}, attack)
}

// beside runs a test while a client goes on that sends a request at a time.
func beside(t *testing.T, ask func(n int) error, attack func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &steady{ask: ask, stop: cancel}
	c.done.Go(func() { c.run(ctx) })
	attack()
	c.stop()
	c.done.Wait()
	if c.err != nil {
		t.Errorf("a client that behaves, after %d requests: %v", c.sent, c.err)
		return
	}
	t.Logf("a client that behaves: none of %d requests failed", c.sent)
}

func (c *steady) run(ctx context.Context) {
	// It goes on for some requests after the attack, which on a busy machine may be over
	// before the client is on its way.
	for after := 0; after < 10 && c.err == nil; {
		if ctx.Err() != nil {
			after++
		}
		// Not with ctx: what has begun is to end well.
		began := time.Now()
		c.err = c.ask(c.sent)
		if took := time.Since(began); c.err == nil && took > steadyAnswer {
			c.err = fmt.Errorf("an answer after %s", took)
		}
		c.sent++
		time.Sleep(steadyPause)
	}
}
