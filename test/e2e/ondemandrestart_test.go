//go:build linux

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"
)

// numberedHosts returns a Gateway with a number of hosts that have certificates, h0.test and so on, their Secrets
// and a route for all of them.
func numberedHosts(t *testing.T, n int) map[string]string {
	t.Helper()
	listeners := []string{"{name: http, port: 80, protocol: HTTP}"}
	secrets, hostnames := "", "home.example"
	for i := range n {
		listeners = append(listeners, fmt.Sprintf("{name: h%d, port: 443, protocol: HTTPS, hostname: h%[1]d.test, tls: {certificateRefs: [{name: h%[1]d}]}}", i))
		secrets += mustSecret(t, fmt.Sprintf("h%d", i), fmt.Sprintf("h%d.test", i))
		hostnames += fmt.Sprintf(", h%d.test", i)
	}
	return map[string]string{
		"gateway.yaml": withShards(siteGateway(listeners...)), "secrets.yaml": secrets, "home.yaml": siteRoute("home", hostnames, "v1"),
	}
}

// serveNames waits until each of a number of hosts is served, with the certificates of port 443 on demand or not.
func (s *site) serveNames(t *testing.T, n int, onDemand bool) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		if chains := s.chains(t); slices.Contains(chains, "tls-443/on-demand") != onDemand {
			return fmt.Errorf("the port has the chains %v", chains)
		}
		for i := range n {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			host := fmt.Sprintf("h%d.test", i)
			got := s.tried(ctx, 443, host, host, "")
			cancel()
			if want := host + " 200 v1"; got != want {
				return fmt.Errorf("%s: %q, want %q", host, got, want)
			}
		}
		return nil
	})
}

// holdName opens connections for a server name, each of which has had an answer.
func (s *site) holdName(t *testing.T, n int, host string) *held {
	t.Helper()
	h := &held{}
	for range n {
		var served []string
		conn, err := dialTLS(t.Context(), net.JoinHostPort(s.address, strconv.Itoa(443+portOffset)), host, &served)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		h.conns = append(h.conns, &heldConn{conn, bufio.NewReader(conn)})
	}
	h.ask(t, host, "v1")
	return h
}

// TestOnDemandThroughAKill protects connections from a control plane that is killed while a port gets another form
// than it had: the next run doesn't know of it, until the proxy says what it has.
func TestOnDemandThroughAKill(t *testing.T) {
	t.Parallel()
	for what, above := range map[string][2]int{"on demand no more": {1, 0}, "on demand": {0, 1}} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, by the first run: %t", what, known), func(t *testing.T) {
				t.Parallel()
				const n = 3
				files := numberedHosts(t, n)
				files["shards.yaml"] = onDemandAbove(above[0])
				s := startSite(t, files)
				s.serveNames(t, n, above[0] > 0)
				old := s.holdName(t, 16, "h1.test")
				if !known {
					s.kill()
				}
				s.write(t, "shards.yaml", onDemandAbove(above[1]))
				if known {
					s.serveNames(t, n, above[1] > 0)
					s.kill()
				}
				s.again(t)
				s.serveNames(t, n, above[1] > 0)
				old.ask(t, "h1.test", "v1")
				s.write(t, "home.yaml", siteRoute("home", "home.example, h0.test, h1.test, h2.test", "v2"))
				s.serves(t, "home.example", "v2")
				old.become(t, "h1.test", "v2")
			})
		}
	}
}

// TestOnDemandAcrossRuns protects listeners from a control plane that starts: a port that is on demand and would stay
// it, is it in the next run too.
func TestOnDemandAcrossRuns(t *testing.T) {
	t.Parallel()
	const n = 4
	files := numberedHosts(t, n)
	files["shards.yaml"] = onDemandAbove(n - 1)
	s := startSite(t, files)
	s.serveNames(t, n, true)
	s.write(t, "gateway.yaml", numberedHosts(t, n-1)["gateway.yaml"])
	eventually(t, siteTimeout, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if got := s.tried(ctx, 443, "h3.test", "h3.test", ""); got != "handshake: refused" {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	s.serveNames(t, n-1, true)
	old := s.holdName(t, 16, "h1.test")
	for range 3 {
		s.kill()
		s.again(t)
		if n := s.sent(t); n != 0 {
			t.Errorf("%d resources were sent to an Envoy that had them all", n)
		}
	}
	s.serveNames(t, n-1, true)
	old.ask(t, "h1.test", "v1")
	if len(old.conns) != 16 {
		t.Errorf("%d of 16 connections are left", len(old.conns))
	}
}
