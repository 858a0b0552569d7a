//go:build linux

package e2e

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

// stream is a connection to a backend of lines that stays open.
type stream struct {
	conn net.Conn
	r    *bufio.Reader
}

// stream connects to a listener's port, with TLS where there is a server name.
func (s *site) stream(port int, sni string) (*stream, error) {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(s.address, strconv.Itoa(port+portOffset)), time.Second)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	if sni != "" {
		var certificate []string
		config, err := clientTLS(sni, nil, "", &certificate)
		if err != nil {
			return nil, err
		}
		conn = tls.Client(conn, config)
	}
	return &stream{conn, bufio.NewReader(conn)}, nil
}

// ask sends a line and returns the name of the backend that answers.
func (s *stream) ask() (string, error) {
	if _, err := io.WriteString(s.conn, "hello\n"); err != nil {
		return "", err
	}
	text, err := s.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line, err := echo.ParseLine(strings.TrimSuffix(text, "\n"))
	return line.Name, err
}

// get sends a request for web.test over the connection, and wants it to stay open.
func (s *stream) get() error {
	if _, err := io.WriteString(s.conn, "GET / HTTP/1.1\r\nHost: web.test\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(s.r, nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK || answer.Close {
		return fmt.Errorf("answered %d, close %v", answer.StatusCode, answer.Close)
	}
	return nil
}

// reaches waits until new connections reach a backend; "" is that they are closed.
func (s *site) reaches(t *testing.T, port int, sni, name string) *stream {
	t.Helper()
	var last *stream
	eventually(t, siteTimeout, func() error {
		c, err := s.stream(port, sni)
		if err != nil {
			return err
		}
		got, err := c.ask()
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			return err
		}
		if got != name {
			_ = c.conn.Close()
			return fmt.Errorf("a new connection reaches %q, want %q: %w", got, name, err)
		}
		last = c
		return nil
	})
	t.Cleanup(func() { _ = last.conn.Close() })
	return last
}

// forwardRoute returns a route of a kind to a Service; more is for its spec.
func forwardRoute(kind, name, section, more string, backends ...string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: %s
metadata: {name: %s, namespace: %s}
spec:
  parentRefs: [{name: gw, sectionName: %s}]
  %s
  rules: [{backendRefs: [%s]}]
`, kind, name, siteNamespace, section, more, strings.Join(backends, ", "))
}

func (k backendKind) must(t *testing.T, name, host string) string {
	t.Helper()
	text, err := k.manifest(siteNamespace, name, name, host)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTCPRouteRemovedUnderConnection protects open connections of a TCPRoute that is
// changed and removed, while new ones follow at once.
func TestTCPRouteRemovedUnderConnection(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}", "{name: tcp, port: 9000, protocol: TCP}"),
		"tcp.yaml":     tcpBackend.must(t, "t1", "") + tcpBackend.must(t, "t2", ""),
		"route.yaml":   forwardRoute("TCPRoute", "r", "tcp", "", "{name: t1, port: 9000}"),
	})
	first := s.reaches(t, 9000, "", "t1")
	s.write(t, "route.yaml", forwardRoute("TCPRoute", "r", "tcp", "", "{name: t2, port: 9000}"))
	second := s.reaches(t, 9000, "", "t2")
	s.remove(t, "route.yaml")
	s.reaches(t, 9000, "", "")
	for want, c := range map[string]*stream{"t1": first, "t2": second} {
		if got, err := c.ask(); got != want {
			t.Errorf("the connection to %s reaches %q: %v", want, got, err)
		}
	}
}

// TestTLSRoutesComeAndGo protects what is open on a TLS port, in other chains, while
// a TLSRoute is added and removed.
func TestTLSRoutesComeAndGo(t *testing.T) {
	t.Parallel()
	secret := issue(func(*x509.Certificate) {}, "web.test")
	s := startSite(t, map[string]string{
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}",
			"{name: https, port: 443, protocol: HTTPS, hostname: web.test, tls: {certificateRefs: [{name: cert}]}}",
			"{name: tls, port: 443, protocol: TLS, hostname: \"*.pass.test\", tls: {mode: Passthrough}}"),
		"cert.yaml": secret.manifest(siteNamespace, "cert"),
		"tls.yaml":  tlsBackend.must(t, "s1", "pass.test") + tlsBackend.must(t, "s2", "pass.test"),
		"web.yaml":  siteRoute("web", "web.test", "v1"),
		"a.yaml":    forwardRoute("TLSRoute", "a", "tls", "hostnames: [a.pass.test]", "{name: s1, port: 8443}"),
	})
	open := s.reaches(t, 443, "a.pass.test", "s1")
	web, err := s.stream(443, "web.test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = web.conn.Close() }()
	for range 20 {
		s.write(t, "b.yaml", forwardRoute("TLSRoute", "b", "tls", "hostnames: [b.pass.test]", "{name: s2, port: 8443}"))
		s.reaches(t, 443, "b.pass.test", "s2")
		s.remove(t, "b.yaml")
		s.reaches(t, 443, "b.pass.test", "")
		if got, err := open.ask(); got != "s1" {
			t.Fatalf("the open connection reaches %q: %v", got, err)
		}
		if err := web.get(); err != nil {
			t.Fatalf("the connection of HTTPS: %v", err)
		}
	}
}

// TestListenerWithoutCertificateKeepsItsHosts protects what an HTTPS listener guards while its Secret is
// away: a TLS listener with a wildcard doesn't get its connections.
func TestListenerWithoutCertificateKeepsItsHosts(t *testing.T) {
	t.Parallel()
	secret := issue(func(*x509.Certificate) {}, "web.test")
	s := startSite(t, map[string]string{
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}",
			"{name: https, port: 443, protocol: HTTPS, hostname: web.test, tls: {certificateRefs: [{name: cert}]}}",
			"{name: tls, port: 443, protocol: TLS, hostname: \"*.test\", tls: {mode: Passthrough}}"),
		"tls.yaml": tlsBackend.must(t, "s1", "web.test"),
		"web.yaml": siteRoute("web", "web.test", "v1"),
		"a.yaml":   forwardRoute("TLSRoute", "a", "tls", "hostnames: [\"*.test\"]", "{name: s1, port: 8443}"),
	})
	s.reaches(t, 443, "a.test", "s1")
	s.reaches(t, 443, "web.test", "")
	s.write(t, "cert.yaml", secret.manifest(siteNamespace, "cert"))
	eventually(t, siteTimeout, func() error {
		web, err := s.stream(443, "web.test")
		if err != nil {
			return err
		}
		defer func() { _ = web.conn.Close() }()
		return web.get()
	})
}

// TestUDPSessionsSurviveEdits protects the sources of a UDP port while its route, the
// weights and the backends change: they stay with their endpoint as long as it is
// among them, and nothing about them touches a listener.
func TestUDPSessionsSurviveEdits(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}", "{name: udp, port: 5353, protocol: UDP}"),
		"udp.yaml":     udpBackend.must(t, "u1", "") + udpBackend.must(t, "u2", ""),
		"route.yaml":   forwardRoute("UDPRoute", "r", "udp", "", "{name: u1, port: 5353}"),
	})
	conn, err := net.Dial("udp", net.JoinHostPort(s.address, strconv.Itoa(5353+portOffset)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ask := func() string {
		_ = conn.SetDeadline(time.Now().Add(datagramTimeout))
		_, _ = io.WriteString(conn, "hello")
		buffer := make([]byte, 1024)
		n, err := conn.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "nobody"
		}
		line, _ := echo.ParseLine(string(buffer[:n]))
		return line.Name
	}
	newcomer := func(want string) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			o, err := (&datagramCall{address: s.address, port: 5353, send: "hello", timeout: silence}).do(t.Context())
			if err != nil {
				return err
			}
			if o.answer.Name != want {
				return fmt.Errorf("a new source reaches %q, want %q", o.answer.Name, want)
			}
			return nil
		})
	}
	newcomer("u1")
	before := s.envoyStats(t, "listener_manager")
	if got := ask(); got != "u1" {
		t.Fatalf("the first datagram reaches %s", got)
	}
	s.write(t, "route.yaml", forwardRoute("UDPRoute", "r", "udp", "", "{name: u1, port: 5353, weight: 1}", "{name: u2, port: 5353, weight: 999999}"))
	newcomer("u2")
	if got := ask(); got != "u1" {
		t.Errorf("after a change of weights the source reaches %s", got)
	}
	s.write(t, "route.yaml", forwardRoute("UDPRoute", "r", "udp", "", "{name: u2, port: 5353}"))
	eventually(t, siteTimeout, func() error {
		if got := ask(); got != "u2" {
			return fmt.Errorf("after its endpoint has gone, the source reaches %s", got)
		}
		return nil
	})
	s.remove(t, "route.yaml")
	newcomer("")
	err = sameStats(before, s.envoyStats(t, "listener_manager"), "listener_manager.listener_added",
		"listener_manager.listener_modified", "listener_manager.listener_removed", "listener_manager.listener_in_place_updated")
	if err != nil {
		t.Error(err)
	}
	s.answers(t, "http://home.example/", http.StatusOK)
}

// TestDatagramsSentTogether protects the bounds of datagrams that a client, or a backend,
// gives the kernel in one go, as fast senders do: they arrive together, and are forwarded
// apart.
func TestDatagramsSentTogether(t *testing.T) {
	t.Parallel()
	const size, count = 1000, 40
	together := make([]byte, 0, count*size)
	for i := range count {
		together = fmt.Appendf(together, "%0*d", size, i)
	}
	bursts, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bursts.Close() }()
	segment(t, bursts, size)
	go func() {
		for buffer := make([]byte, 64<<10); ; {
			_, from, err := bursts.ReadFromUDP(buffer)
			if err != nil {
				return // closed
			}
			_, _ = bursts.WriteToUDP(together, from)
		}
	}()
	s := startSite(t, map[string]string{
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}",
			"{name: udp, port: 5353, protocol: UDP}", "{name: bursts, port: 5354, protocol: UDP}"),
		"udp.yaml": udpBackend.must(t, "u1", "") +
			udpBackend.leading(siteNamespace, "bursts", bursts.LocalAddr().(*net.UDPAddr).Port),
		"route.yaml": forwardRoute("UDPRoute", "r", "udp", "", "{name: u1, port: 5353}") +
			forwardRoute("UDPRoute", "b", "bursts", "", "{name: bursts, port: 5353}"),
	})
	s.conditions(t, "Gateway gw", "udp", "Programmed=True")
	s.conditions(t, "Gateway gw", "bursts", "Programmed=True")

	dial := func(port int) *net.UDPConn {
		conn, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.ParseIP(s.address), Port: port + portOffset})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(datagramTimeout))
		return conn
	}
	read := func(conn *net.UDPConn, text func([]byte) string) {
		t.Helper()
		missing := map[string]bool{}
		for i := range count {
			missing[fmt.Sprintf("%0*d", size, i)] = true
		}
		for buffer := make([]byte, 64<<10); len(missing) > 0; {
			n, err := conn.Read(buffer)
			if err != nil {
				t.Fatalf("%d of %d datagrams came: %v", count-len(missing), count, err)
			}
			got := text(buffer[:n])
			if !missing[got] {
				t.Fatalf("a datagram of %d bytes, which nobody sent", n)
			}
			delete(missing, got)
		}
	}
	client := dial(5353)
	segment(t, client, size)
	if _, err := client.Write(together); err != nil {
		t.Fatal(err)
	}
	read(client, func(answer []byte) string {
		line, _ := echo.ParseLine(string(answer))
		return line.Text
	})
	client = dial(5354)
	if _, err := io.WriteString(client, "hello"); err != nil {
		t.Fatal(err)
	}
	read(client, func(answer []byte) string { return string(answer) })
}

// segment makes the kernel cut what is written at once into datagrams of a size.
func segment(t *testing.T, conn *net.UDPConn, size int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	controlled := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size)
	})
	if err := errors.Join(controlled, err); err != nil {
		t.Fatal(err)
	}
}
