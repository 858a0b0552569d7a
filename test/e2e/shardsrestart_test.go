//go:build linux

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

// TestShardsThroughAKill protects connections that drain from a control plane that is killed: the next
// run doesn't know in which form a proxy has a table, until the proxy says it.
func TestShardsThroughAKill(t *testing.T) {
	t.Parallel()
	const above = 64
	for _, c := range []struct {
		what        string
		first, then int // routes
	}{
		{"made whole", above + 8, 8},
		{"divided", 8, above + 8},
	} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, by the first run: %t", c.what, known), func(t *testing.T) {
				t.Parallel()
				s := startSite(t, map[string]string{
					"gateway.yaml": withShards(siteGateway("{name: http, port: 80, protocol: HTTP}")),
					"shards.yaml":  shardAbove(above),
					"many.yaml":    manyRoutes(c.first),
				})
				has := func(n int) error {
					if (s.shards(t) > 0) != (n > above) {
						return fmt.Errorf("Envoy has %d shards of %d routes", s.shards(t), n)
					}
					return nil
				}
				s.serves(t, fmt.Sprintf("h%d.example", c.first-1), "v1")
				eventually(t, siteTimeout, func() error { return has(c.first) })
				old := s.hold(t, 16)
				old.ask(t, "home.example", "v1")
				l := startLoad(t, s.listener(), 2, func() string { return "home.example" })

				s.write(t, "many.yaml", manyRoutes(c.then))
				if known {
					if c.then > c.first {
						s.serves(t, fmt.Sprintf("h%d.example", c.then-1), "v1")
					} else {
						s.answers(t, fmt.Sprintf("http://h%d.example/", c.first-1), http.StatusNotFound)
					}
				}
				s.kill()
				s.again(t)
				fresh := s.hold(t, 4)
				for _, host := range []string{"home.example", fmt.Sprintf("h%d.example", min(c.first, c.then)-1)} {
					fresh.ask(t, host, "v1")
					old.ask(t, host, "v1")
				}
				l.more(t, 100)
				if wrong := l.end(); len(wrong) > 0 {
					t.Errorf("of %d requests, not 200: %v", l.sent.Load(), wrong)
				}
				// What changes counts on all connections.
				s.write(t, "home.yaml", siteRoute("home", "home.example", "v2"))
				s.serves(t, "home.example", "v2")
				fresh.become(t, "home.example", "v2")
				old.become(t, "home.example", "v2")
			})
		}
	}
}

// TestShardsAcrossRuns protects listeners from a control plane that starts: what a table was in the last
// run, and still may be, it is in the next.
func TestShardsAcrossRuns(t *testing.T) {
	t.Parallel()
	const above = 64
	s := startSite(t, map[string]string{
		"gateway.yaml": withShards(siteGateway("{name: http, port: 80, protocol: HTTP}", "{name: side, port: 81, protocol: HTTP, hostname: side.example}")),
		"shards.yaml":  shardAbove(above),
		"many.yaml":    manyRoutes(above + 8),
	})
	s.serves(t, fmt.Sprintf("h%d.example", above+7), "v1")
	s.write(t, "many.yaml", manyRoutes(above-8))
	s.answers(t, fmt.Sprintf("http://h%d.example/", above+7), http.StatusNotFound)
	if s.shards(t) == 0 {
		t.Fatal("the table is not divided")
	}
	old := s.hold(t, 16)
	for range 3 {
		s.kill()
		s.again(t)
		if n := s.sent(t); n != 0 {
			t.Errorf("%d resources were sent to an Envoy that had them all", n)
		}
	}
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v2"))
	s.serves(t, "home.example", "v2")
	old.become(t, "home.example", "v2")
}

// manyRoutes returns a number of routes, each of one host.
func manyRoutes(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(siteRoute(fmt.Sprintf("many-%d", i), fmt.Sprintf("h%d.example", i), "v1"))
	}
	return b.String()
}

// shards is how many route configurations Envoy has of the table of port 80 when it is divided.
func (s *site) shards(t *testing.T) (n int) {
	t.Helper()
	for name := range s.envoyStats(t, "config_reload_time_ms") {
		if strings.Contains(name, ".rds.http-80/") {
			n++
		}
	}
	return n
}

// held are connections that are kept for as long as the proxy doesn't say that it closes them.
type held struct {
	conns []*heldConn
}

type heldConn struct {
	net.Conn
	in *bufio.Reader
}

// hold opens connections, each of which has had an answer.
func (s *site) hold(t *testing.T, n int) *held {
	t.Helper()
	h := &held{}
	for range n {
		conn := s.open(t, 80)
		h.conns = append(h.conns, &heldConn{conn, bufio.NewReader(conn)})
	}
	h.ask(t, "home.example", "v1")
	return h
}

// ask sends a request on each connection, which a backend has to answer.
func (h *held) ask(t *testing.T, host, backend string) {
	t.Helper()
	if err := h.answers(host, backend); err != nil {
		t.Fatal(err)
	}
}

// become waits until requests on all connections reach a backend, and come from some one meanwhile.
func (h *held) become(t *testing.T, host, backend string) {
	t.Helper()
	eventually(t, siteTimeout, func() error { return h.answers(host, backend) })
}

func (h *held) answers(host, backend string) error {
	var open []*heldConn
	var wrong error
	for _, c := range h.conns {
		got, last, err := c.ask(host)
		switch {
		case err != nil:
			return permanent(err)
		case got != backend:
			wrong = fmt.Errorf("%s is served by %s, want %s", host, got, backend)
		}
		if !last {
			open = append(open, c)
		}
	}
	if h.conns = open; len(open) == 0 {
		return permanent(fmt.Errorf("all connections have been closed"))
	}
	return wrong
}

// ask returns which backend answers, and whether the answer is the last one on the connection.
func (c *heldConn) ask(host string) (backend string, last bool, err error) {
	_ = c.SetDeadline(time.Now().Add(callTimeout))
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
		return "", false, err
	}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return "", false, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", false, err
	}
	if res.StatusCode != http.StatusOK {
		return "", false, fmt.Errorf("%s on a connection of before: status %d", host, res.StatusCode)
	}
	var answer echo.Answer
	err = json.Unmarshal(body, &answer)
	return answer.Name, res.Close, err
}
