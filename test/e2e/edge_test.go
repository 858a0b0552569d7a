//go:build linux

package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// The tests of this file are clients that nobody wants, each for a short time and
// with few means, next to one that behaves. What is refused is one thing, that
// others are served meanwhile the other.

// edgeSite is a site with an HTTPS listener for home.example alone.
func edgeSite(t *testing.T, manifests map[string]string, args ...string) *site {
	t.Helper()
	secret, err := secretManifest(siteNamespace, "home", "", "home.example")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"secret.yaml":  secret,
		"gateway.yaml": siteGateway(httpListener, tlsListener("home", "home.example")),
	}
	maps.Copy(all, manifests)
	s := startSite(t, all, args...)
	s.answers(t, "https://home.example/", http.StatusOK)
	return s
}

// port is where a listener's port is.
func (s *site) port(port int) string {
	return net.JoinHostPort(s.address, strconv.Itoa(port+portOffset))
}

// open opens a connection that lasts at most as long as the test.
func (s *site) open(t *testing.T, port int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.port(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// closes waits until the other side has closed a connection.
func closes(conn net.Conn, within time.Duration) error {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	_, err := io.Copy(io.Discard, conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("still open after %s", within)
	}
	return nil // the end, or a reset
}

// TestServerNames protects everybody from clients with server names that nobody
// serves, among them the wildcard that a listener has and the one that xDS knows: Envoy
// ends each of their connections because no listener has the name. The names that
// listeners have are served, as the same client sees.
func TestServerNames(t *testing.T) {
	t.Parallel()
	wild := mustSecret(t, "wild", "*.wild.example")
	s := edgeSite(t, map[string]string{
		"wild.yaml":    wild,
		"gateway.yaml": siteGateway(httpListener, tlsListener("home", "home.example"), tlsListener("wild", `"*.wild.example"`)),
	})
	// shake returns for which name the certificate is that a client is shown; none where
	// its connection is ended before.
	shake := func(name string) (string, error) {
		conn, err := net.DialTimeout("tcp", s.port(443), callTimeout)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(callTimeout))
		//nolint:gosec // which certificate is shown is the question
		client := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		switch err = client.Handshake(); {
		case err == nil:
			return client.ConnectionState().PeerCertificates[0].DNSNames[0], nil
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			return "", nil
		default:
			return "", fmt.Errorf("server name %q: %w", name, err)
		}
	}
	for name, want := range map[string]string{
		"home.example": "home.example", "HOME.example": "home.example",
		"a.wild.example": "*.wild.example", "b.a.wild.example": "*.wild.example",
	} {
		eventually(t, siteTimeout, func() error {
			if got, err := shake(name); err != nil || got != want {
				return fmt.Errorf("server name %q: the certificate of %q, %w", name, got, err)
			}
			return nil
		})
	}
	unmatched := func() (n int64) {
		for name, value := range s.envoyStats(t, "no_filter_chain_match") {
			if strings.Contains(name, "listener.") {
				n += value
			}
		}
		return n
	}
	before := unmatched()
	var refused atomic.Int64
	refuse := func(name string) error {
		got, err := shake(name)
		if err == nil && got != "" {
			err = fmt.Errorf("server name %q is served, with the certificate of %q", name, got)
		}
		refused.Add(1)
		return err
	}
	s.beside(t, func() {
		for _, name := range []string{
			"*", "*.example", ".", "xn--", strings.Repeat("a.", 120) + "example", "127.0.0.1", "",
			"wild.example", "example", "home.example.evil.example", "ahome.example", "a.home.example",
		} {
			if err := refuse(name); err != nil {
				t.Error(err)
			}
		}
		var names atomic.Int64
		var clients sync.WaitGroup
		for range 10 {
			clients.Go(func() {
				for names.Add(1) <= 1000 {
					if err := refuse(fmt.Sprintf("n%x.example", rand.Uint64())); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		clients.Wait()
	})
	if n := unmatched() - before; n != refused.Load() {
		t.Errorf("%d connections were ended since no listener has the name, want all %d", n, refused.Load())
	}
}

// TestHalfOpen protects everybody from clients that open connections and stop before
// they have shaken hands or, without TLS, said anything: the connections go after ten
// seconds, wherever they stopped.
func TestHalfOpen(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	s := edgeSite(t, nil)
	hello := clientHello(t, "home.example")
	begin := map[int][]string{
		443: {"", string(hello[:3]), string(hello[:len(hello)-1]), string(hello)}, // and no word after the server's
		80:  {""},
	}
	var conns []net.Conn
	var kinds []string
	s.beside(t, func() {
		for port, all := range begin {
			for i := range 120 {
				said := all[i%len(all)]
				conn := s.open(t, port)
				conns, kinds = append(conns, conn), append(kinds, fmt.Sprintf("port %d, %q", port, said))
				if _, err := io.WriteString(conn, said); err != nil {
					t.Fatal(err)
				}
			}
		}
		deadline := time.Now().Add(14 * time.Second)
		for i, conn := range conns {
			if err := closes(conn, time.Until(deadline)); err != nil {
				t.Fatalf("connection %d, %s: %v", i, kinds[i], err)
			}
		}
	})
}

// clientHello is the first message of a client.
func clientHello(t *testing.T, name string) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		_ = tls.Client(client, &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12}).Handshake()
	}()
	defer client.Close()
	hello := make([]byte, 4096)
	n, err := server.Read(hello)
	if err != nil {
		t.Fatal(err)
	}
	return hello[:n]
}

// TestSlowHeaders protects everybody from clients that send a request a byte at a
// time: the headers have a time limit as a whole.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	s := edgeSite(t, nil, "--limit", "headers-timeout=1s")
	s.beside(t, func() {
		var clients sync.WaitGroup
		for range 50 {
			conn := s.open(t, 80)
			clients.Go(func() {
				began := time.Now()
				_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: home.example\r\n")
				for err == nil && time.Since(began) < 10*time.Second {
					time.Sleep(100 * time.Millisecond)
					_, err = io.WriteString(conn, "X: y\r\n")
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("headers may take %s", took)
				}
			})
		}
		clients.Wait()
	})
}

// TestOversizedHeaders protects memory, Envoy's and the backends'.
func TestOversizedHeaders(t *testing.T) {
	t.Parallel()
	s := edgeSite(t, nil)
	const start = "GET / HTTP/1.1\r\nHost: home.example\r\n"
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "X-%d: y\r\n", i)
		}
		return b.String()
	}
	s.beside(t, func() {
		for _, c := range []struct {
			name, request string
			status        int
		}{
			{"50 KiB in one", start + "X: " + strings.Repeat("y", 50<<10) + "\r\n\r\n", 200},
			{"61 KiB in one", start + "X: " + strings.Repeat("y", 61<<10) + "\r\n\r\n", 431},
			{"90 of them", start + many(90) + "\r\n", 200},
			{"101 of them", start + many(101) + "\r\n", 431},
			{"61 KiB of path", "GET /" + strings.Repeat("y", 61<<10) + " HTTP/1.1\r\nHost: home.example\r\n\r\n", 431},
			{"1 MiB without an end", start + "X: " + strings.Repeat("y", 1<<20), 431},
		} {
			if a := s.raw(t, c.request); a.status != c.status {
				t.Errorf("%s: %d, want %d", c.name, a.status, c.status)
			}
		}
	})
}

// TestProxyProtocol protects what backends are told of clients behind a load balancer
// that speaks the PROXY protocol, and the rule that nobody else is served.
func TestProxyProtocol(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	secret, err := secretManifest(siteNamespace, "home", "", "home.example")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, map[string]string{
		"secret.yaml":  secret,
		"gateway.yaml": siteGateway(httpListener, tlsListener("home", "home.example")),
	}, "--proxy-protocol")
	call := func(port int, header string) (*echo.Answer, error) {
		conn, err := net.Dial("tcp", s.port(port))
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(callTimeout))
		if _, err := io.WriteString(conn, header); err != nil {
			return nil, err
		}
		if port == 443 {
			//nolint:gosec // who the client is, is the question
			conn = tls.Client(conn, &tls.Config{ServerName: "home.example", InsecureSkipVerify: true})
		}
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: home.example\r\nX-Forwarded-For: 192.0.2.7\r\nConnection: close\r\n\r\n"); err != nil {
			return nil, err
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("status %d", resp.StatusCode)
		}
		answer := &echo.Answer{}
		return answer, json.NewDecoder(resp.Body).Decode(answer)
	}
	for _, port := range []int{80, 443} {
		eventually(t, siteTimeout, func() error {
			answer, err := call(port, "PROXY TCP4 198.51.100.7 203.0.113.1 5555 443\r\n")
			if err != nil {
				return err
			}
			if got := answer.Headers.Get("X-Forwarded-For"); got != "192.0.2.7,198.51.100.7" {
				return fmt.Errorf("port %d: X-Forwarded-For: %q", port, got)
			}
			return nil
		})
		for _, header := range []string{"", "PROXY TCP4 nonsense\r\n", "PROXY TCP4 198.51.100.7 203.0.113.1 5555\r\n", "\r\n\r\n\x00\r\nQUIT\n\x2f\xff\x00\x00"} {
			if answer, err := call(port, header); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("port %d after %q: %+v %v, want a closed connection", port, header, answer, err)
			}
		}
		silent := s.open(t, port)
		if err := closes(silent, 14*time.Second); err != nil {
			t.Errorf("port %d, a client that says nothing: %v", port, err)
		}
	}
}

// TestTrustedHops protects what proxies in front say of requests.
func TestTrustedHops(t *testing.T) {
	t.Parallel()
	const request = "GET / HTTP/1.1\r\nHost: home.example\r\nX-Forwarded-For: 192.0.2.1, 192.0.2.2\r\n" +
		"X-Forwarded-Proto: https\r\nX-Forwarded-Host: shown.example\r\nX-Real-IP: 192.0.2.1\r\nX-Envoy-Retry-On: 5xx\r\nConnection: close\r\n\r\n"
	for _, c := range []struct {
		hops string
		want map[string]string
	}{
		{"0", map[string]string{"X-Forwarded-Proto": "http", "X-Forwarded-Host": "", "X-Real-Ip": ""}},
		{"1", map[string]string{"X-Forwarded-Proto": "https", "X-Forwarded-Host": "shown.example", "X-Real-Ip": "192.0.2.1"}},
	} {
		s := startSite(t, nil, "--trusted-hops", c.hops)
		var seen echo.Answer
		if err := json.Unmarshal([]byte(s.raw(t, request).body), &seen); err != nil {
			t.Fatal(err)
		}
		c.want["X-Forwarded-For"], c.want["X-Envoy-Retry-On"] = "192.0.2.1, 192.0.2.2,127.0.0.1", ""
		for name, want := range c.want {
			if got := seen.Headers.Get(name); got != want {
				t.Errorf("%s trusted hops: %s is %q, want %q", c.hops, name, got, want)
			}
		}
	}
}

// rawAnswer is what a connection brought; a status of 0 means that it was closed
// without an answer.
type rawAnswer struct {
	status int
	header http.Header
	body   string
	more   int // further answers on the same connection
}

// raw sends bytes to the HTTP listener and reads answers until nothing comes any
// more.
func (s *site) raw(t *testing.T, bytes string) rawAnswer {
	t.Helper()
	conn := s.open(t, 80)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(callTimeout))
	go func() { _, _ = io.WriteString(conn, bytes) }()
	in := bufio.NewReader(conn)
	var a rawAnswer
	for {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) && a.status == 0 {
				a.status = -1
			}
			return a
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if a.status == 0 {
			a = rawAnswer{status: resp.StatusCode, header: resp.Header, body: string(body)}
			// Whatever else comes on the connection comes soon.
			_ = conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
		} else {
			a.more++
		}
	}
}
