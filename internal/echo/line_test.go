package echo

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// run runs a server for the time of the test.
func run(t *testing.T, server interface{ Run(context.Context) error }) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func startTCP(t *testing.T, config *tls.Config) string {
	t.Helper()
	s, err := NewTCP(t.Context(), Options{Listen: []string{"127.0.0.1:0"}, Name: "db", TLS: config})
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	return s.Addresses()[0].String()
}

func TestLinesParse(t *testing.T) {
	for _, want := range []Line{
		{Name: "v1", Text: "hello: world"},
		{Name: "v1", Text: ""},
		{Name: "v1", TLS: &TLSInfo{Version: "TLS 1.3", ServerName: "a.test", Peers: []string{"CN=a: b"}}, Text: "x"},
	} {
		got, err := ParseLine(want.String())
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v %s", want, err, cmp.Diff(want, got))
		}
	}
	for _, text := range []string{"", "v1", "v1:x", ": x", "v1 {: x", "v1 {} x", "HTTP/1.1 400 Bad Request"} {
		if l, err := ParseLine(text); err == nil {
			t.Errorf("%q is %+v", text, l)
		}
	}
}

func TestTCPEchoesUntilTheClientIsDone(t *testing.T) {
	conn, err := net.Dial("tcp", startTCP(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for _, line := range []string{"one", "two"} {
		fmt.Fprintln(conn, line)
		if got, err := r.ReadString('\n'); err != nil || got != "db: "+line+"\n" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		t.Fatal("no TCP connection")
	}
	if err := tcp.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "db: bye\n" {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestTCPEndsALineWithoutEnd(t *testing.T) {
	conn, err := net.Dial("tcp", startTCP(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The server may close while this is being written.
	_, _ = io.WriteString(conn, strings.Repeat("x", 2*maxLine))
	if rest, _ := io.ReadAll(conn); len(rest) != 0 {
		t.Errorf("answered %d bytes", len(rest))
	}
}

func TestTCPStopsWithOpenConnections(t *testing.T) {
	s, err := NewTCP(t.Context(), Options{Listen: []string{"127.0.0.1:0", "[::1]:0"}, Name: "db"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	conn, err := net.Dial("tcp", s.Addresses()[1].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintln(conn, "hello")
	r := bufio.NewReader(conn)
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, err := r.ReadString('\n'); err == nil {
		t.Errorf("the connection is still open: %q", got)
	}
}

func TestTLSLines(t *testing.T) {
	source := httptest.NewTLSServer(nil)
	defer source.Close()
	addr := startTCP(t, &tls.Config{
		Certificates: source.TLS.Certificates, MinVersion: tls.VersionTLS12, NextProtos: []string{"db"},
	})
	conn, err := tls.Dial("tcp", addr, &tls.Config{
		ServerName: "example.com", NextProtos: []string{"db"}, RootCAs: rootsOf(source), MinVersion: tls.VersionTLS13,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintln(conn, "hello")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(rest)), "\n")
	if len(lines) != 2 {
		t.Fatalf("lines: %q", lines)
	}
	session := &TLSInfo{Version: "TLS 1.3", ServerName: "example.com", ALPN: "db"}
	for i, text := range []string{"hello", Bye} {
		got, err := ParseLine(lines[i])
		if diff := cmp.Diff(Line{Name: "db", TLS: session, Text: text}, got); err != nil || diff != "" {
			t.Errorf("line %d: %v %s", i+1, err, diff)
		}
	}
}

func TestUDPEchoes(t *testing.T) {
	s, err := NewUDP(t.Context(), Options{Listen: []string{"127.0.0.1:0"}, Name: "dns"})
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	conn, err := net.Dial("udp", s.Addresses()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	for _, text := range []string{"hello", ""} {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(buffer)
		if err != nil || string(buffer[:n]) != "dns: "+text {
			t.Errorf("%q, %v", buffer[:n], err)
		}
	}
}

func TestAddressesAreNeeded(t *testing.T) {
	if _, err := NewTCP(t.Context(), Options{}); err == nil {
		t.Error("no error of TCP without addresses")
	}
	if _, err := NewUDP(t.Context(), Options{}); err == nil {
		t.Error("no error of UDP without addresses")
	}
}

func rootsOf(s *httptest.Server) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return roots
}
