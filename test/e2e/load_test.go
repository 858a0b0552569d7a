//go:build linux

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load is a few clients that send requests as fast as they are answered, over
// kept connections, as a busy site's would.
type load struct {
	sent     atomic.Int64
	answered atomic.Int64 // of those, not counting connections that are refused, say
	stop     context.CancelFunc
	done     sync.WaitGroup

	mu     sync.Mutex
	wrong  map[string]int // what was not 200, by what it was
	target func() string  // the host to ask, looked up for each request
}

// loadClients is enough to keep both of Envoy's workers busy and leaves the
// machine time for the control plane.
const loadClients = 4

// startLoad sends requests to address (host:port) until the test or end ends it.
func startLoad(t *testing.T, address string, clients int, target func() string) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{stop: cancel, wrong: map[string]int{}, target: target}
	for range clients {
		l.done.Go(func() { l.client(ctx, address) })
	}
	t.Cleanup(func() { l.end() })
	return l
}

func (l *load) client(ctx context.Context, address string) {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}
	defer transport.CloseIdleConnections()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.target()+"/", nil)
		if err != nil {
			l.note(err.Error())
			return
		}
		res, err := transport.RoundTrip(req)
		var said []byte
		if err == nil {
			said, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.note(err.Error())
			select { // a refusal takes no time: a port that is closed for a second would be most of what is tried
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
		case res.StatusCode >= http.StatusInternalServerError: // Envoy says why
			l.note(fmt.Sprintf("status %d: %s", res.StatusCode, clipped(said)))
		case res.StatusCode != http.StatusOK:
			l.note(fmt.Sprintf("status %d", res.StatusCode))
		}
		l.sent.Add(1)
		if err == nil {
			l.answered.Add(1)
		}
	}
}

func (l *load) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong[what]++
}

// more waits until n more requests have been answered.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	goal := l.answered.Load() + n
	eventually(t, 30*time.Second, func() error {
		if got := l.answered.Load(); got < goal {
			return fmt.Errorf("%d of %d requests have been answered", got, goal)
		}
		return nil
	})
}

// passed stops the clients and returns how many requests were answered with 200, and what the
// others were.
func (l *load) passed() (n int64, wrong map[string]int) {
	wrong = l.end()
	n = l.sent.Load()
	for _, others := range wrong {
		n -= int64(others)
	}
	return n, wrong
}

// end stops the clients and returns what was not 200.
func (l *load) end() map[string]int {
	l.stop()
	l.done.Wait()
	return l.wrong
}
