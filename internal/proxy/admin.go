package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxAdminBody bounds an answer of the admin interface; a configuration dump
// of 20,000 routes has some tens of MiB.
const maxAdminBody = 256 << 20

// adminClient talks to the admin interface of one Envoy over its Unix socket.
type adminClient struct {
	heldSocket
	http http.Client
}

func newAdminClient(socket string) *adminClient {
	a := &adminClient{heldSocket: heldSocket{path: socket}}
	a.http.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return a.dial(ctx) },
		// The next call may meet another process on the same path.
		DisableKeepAlives: true,
	}
	return a
}

// do asks for path ("/stats?filter=x") and returns the body of a 200.
func (a *adminClient) do(ctx context.Context, method, path string) ([]byte, error) {
	code, body, err := a.ask(ctx, method, path)
	if err != nil {
		return nil, err
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("envoy admin %s %s: status %d%s", method, path, code, quoted(body))
	}
	return body, nil
}

func (a *adminClient) ask(ctx context.Context, method, path string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://envoy"+path, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("envoy admin %s %s: %w", method, path, err)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("envoy admin %s %s: %w", method, path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAdminBody+1))
	if err != nil {
		return 0, nil, fmt.Errorf("envoy admin %s %s: %w", method, path, err)
	}
	if len(body) > maxAdminBody {
		return 0, nil, fmt.Errorf("envoy admin %s %s: the answer exceeds %d MiB", method, path, maxAdminBody>>20)
	}
	return resp.StatusCode, body, nil
}

// The states that /ready answers.
const (
	envoyLive     = "LIVE"
	envoyDraining = "DRAINING"
)

// ready asks for Envoy's own state: LIVE, INITIALIZING, DRAINING.
func (a *adminClient) ready(ctx context.Context, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, body, err := a.ask(ctx, http.MethodGet, "/ready")
	return string(bytes.TrimSpace(body)), err
}

// stats returns the counters and gauges whose names match the regex (RE2,
// anywhere in the name). Histograms and texts are left out.
func (a *adminClient) stats(ctx context.Context, filter string) (map[string]uint64, error) {
	body, err := a.do(ctx, http.MethodGet, "/stats?filter="+url.QueryEscape(filter))
	if err != nil {
		return nil, err
	}
	stats := make(map[string]uint64)
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		// Names have colons (IPv6 listeners), values of numbers have none.
		line := lines.Text()
		before, after, ok := strings.CutLast(line, ": ")
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(after, 10, 64); err == nil {
			stats[before] = n
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("statistics of Envoy: %w", err)
	}
	return stats, nil
}
