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

// TestSilentConnections protects everybody from clients that open connections, with TLS and
// without, and ask for nothing: as connections become few, those that are silent end within
// seconds, so that the others find room. While there are enough nobody is cut off.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	const (
		connections = 1000
		rate        = 100 // a second
		attack      = 25 * time.Second
	)
	s := narrowSite(t, connections)
	patient := s.open(t, 80)
	if err := closes(patient, 8*time.Second); err == nil {
		t.Error("a silent connection is closed without need")
	}

	var opened, ended, refused atomic.Int64
	var clients sync.WaitGroup
	var mu sync.Mutex
	var all []net.Conn
	silent := func(port int) {
		conn, err := net.DialTimeout("tcp", s.port(port), callTimeout)
		if err != nil {
			refused.Add(1)
			return
		}
		mu.Lock()
		all = append(all, conn)
		mu.Unlock()
		opened.Add(1)
		if port == 443 {
			//nolint:gosec // it asks for nothing
			if err := tls.Client(conn, &tls.Config{ServerName: "home.example", InsecureSkipVerify: true}).Handshake(); err != nil {
				refused.Add(1)
				return
			}
		}
		_, _ = io.Copy(io.Discard, conn)
		ended.Add(1)
	}
	s.beside(t, func() {
		tick := time.NewTicker(time.Second / rate)
		defer tick.Stop()
		for began := time.Now(); time.Since(began) < attack; <-tick.C {
			port := 80
			if opened.Load()%2 == 1 {
				port = 443
			}
			clients.Go(func() { silent(port) })
		}
	})
	t.Logf("%d silent connections, %d ended by Envoy, %d refused", opened.Load(), ended.Load(), refused.Load())
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
