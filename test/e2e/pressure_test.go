//go:build linux

package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// narrowSite is edgeSite with an Envoy that may have so many connections.
func narrowSite(t *testing.T, connections int) *site {
	t.Helper()
	found := needTools(t)
	script := filepath.Join(t.TempDir(), "gatehouse")
	text := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n", 2*connections, found.gatehouse)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	found.gatehouse = script
	s := &site{address: newAddress()}
	var err error
	if s.process, err = newProcess(found, "--bind", s.address, "--port-offset", strconv.Itoa(portOffset)); err != nil {
		t.Fatal(err)
	}
	secret, err := secretManifest(siteNamespace, "home", "", "home.example")
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "secret.yaml", secret)
	s.write(t, "gateway.yaml", siteGateway(httpListener, tlsListener("home", "home.example")))
	s.write(t, "backends.yaml", mustBackend(t, siteNamespace, "v1", "v1"))
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v1"))
	t.Cleanup(func() {
		s.end()
		if t.Failed() {
			t.Logf("end of gatehouse's log:\n%s", s.log.Tail(60))
		}
	})
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	if err := s.waitReady(); err != nil {
		t.Fatal(err)
	}
	s.answers(t, "https://home.example/", http.StatusOK)
	return s
}

// quietness is how a client begins before it asks for nothing.
type quietness int

const (
	silentPlain quietness = iota // not at all
	silentTLS                    // with a handshake, for HTTP/1
	silentHTTP2                  // with a handshake and the preface of HTTP/2
	quietnesses
)

// silent opens a connection that asks for nothing, and returns it when it is ready for a
// request.
func (s *site) silent(how quietness) (net.Conn, error) {
	port := 443
	if how == silentPlain {
		port = 80
	}
	conn, err := net.DialTimeout("tcp", s.port(port), callTimeout)
	if err != nil || how == silentPlain {
		return conn, err
	}
	//nolint:gosec // it asks for nothing
	config := &tls.Config{ServerName: "home.example", InsecureSkipVerify: true}
	if how == silentHTTP2 {
		config.NextProtos = []string{"h2"}
	}
	client := tls.Client(conn, config)
	_ = client.SetDeadline(time.Now().Add(callTimeout))
	if err = client.Handshake(); err == nil && how == silentHTTP2 {
		_, err = io.WriteString(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = client.SetDeadline(time.Time{})
	return client, nil
}

// TestSilentConnections protects everybody from clients that open connections, with TLS and
// without, and ask for nothing: as connections become few, those that are silent end within
// seconds, so that the others find room. While there are enough, who has shaken hands stays.
func TestSilentConnections(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	const (
		connections = 1000
		rate        = 100 // a second
		attack      = 25 * time.Second
		longest     = 2 * time.Minute // where the machine is too busy for that rate
	)
	s := narrowSite(t, connections)
	for _, how := range []quietness{silentTLS, silentHTTP2} {
		patient, err := s.silent(how)
		if err != nil {
			t.Fatal(err)
		}
		defer patient.Close()
		if err := closes(patient, 6*time.Second); err == nil {
			t.Error("a silent connection is closed without need")
		}
	}

	var opened, ended, refused atomic.Int64
	var clients sync.WaitGroup
	var mu sync.Mutex
	var all []net.Conn
	silent := func(how quietness) {
		conn, err := s.silent(how)
		if err != nil {
			refused.Add(1)
			return
		}
		opened.Add(1)
		mu.Lock()
		all = append(all, conn)
		mu.Unlock()
		_, _ = io.Copy(io.Discard, conn)
		ended.Add(1)
	}
	s.beside(t, func() {
		tick := time.NewTicker(time.Second / rate)
		defer tick.Stop()
		how := silentPlain
		for began := time.Now(); time.Since(began) < attack || opened.Load() < 2*connections && time.Since(began) < longest; <-tick.C {
			how = (how + 1) % quietnesses
			next := how
			clients.Go(func() { silent(next) })
		}
	})
	t.Logf("%d silent connections, %d ended by Envoy, %d refused; pressure %v",
		opened.Load(), ended.Load(), refused.Load(), s.envoyStats(t, "global_downstream_max_connections.pressure"))
	if ended.Load() < connections/2 || opened.Load() < 2*connections {
		t.Errorf("of %d silent connections %d were ended, want %d at least, of twice the limit", opened.Load(), ended.Load(), connections/2)
	}
	mu.Lock()
	for _, conn := range all {
		_ = conn.Close()
	}
	mu.Unlock()
	clients.Wait()
}
