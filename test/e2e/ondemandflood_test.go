//go:build linux

package e2e

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// hello is what a client sends first for a server name.
func hello(sni string) []byte {
	client, server := net.Pipe()
	defer func() { _, _ = client.Close(), server.Close() }()
	go func() { _ = tls.Client(client, &tls.Config{ServerName: sni, InsecureSkipVerify: true}).Handshake() }() //nolint:gosec // nobody answers
	first := make([]byte, 16<<10)
	n, _ := server.Read(first)
	return first[:n]
}

// flood has many clients ask for server names, of one length, one connection for each, which they give up
// after a time. It returns how many got an answer.
func (s *site) flood(names, clients int, patience time.Duration, name func(i int64) string) int64 {
	template := strings.Repeat("q", len(name(1)))
	first := hello(template)
	var next, answered atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(names); i = next.Add(1) {
				conn, err := net.Dial("tcp", s.port(443))
				if err != nil {
					continue
				}
				_, _ = conn.Write(bytes.Replace(first, []byte(template), []byte(name(i)), 1))
				_ = conn.SetReadDeadline(time.Now().Add(patience))
				if _, err := conn.Read(make([]byte, 64)); err == nil {
					answered.Add(1)
				}
				_ = conn.Close()
			}
		})
	}
	wg.Wait()
	return answered.Load()
}

// TestOnDemandFlood protects a proxy from clients that make up server names, and spellings of one that there is:
// they are answered and leave nothing, and those that come while there is no controller don't keep the proxy from the
// next one.
func TestOnDemandFlood(t *testing.T) {
	slow.Skip(t)
	const names, host = 22_000, "abcdefghijklmnopqrstuvwxyz.test"
	gateway := siteGateway("{name: http, port: 80, protocol: HTTP}",
		"{name: a, port: 443, protocol: HTTPS, hostname: "+host+", tls: {certificateRefs: [{name: a}]}}",
		"{name: b, port: 443, protocol: HTTPS, hostname: b.test, tls: {certificateRefs: [{name: b}]}}")
	s := startSite(t, map[string]string{
		"gateway.yaml": withShards(gateway), "shards.yaml": onDemandAbove(1),
		"secrets.yaml": mustSecret(t, "a", host) + mustSecret(t, "b", "b.test"),
	})
	madeUp := func(i int64) string { return fmt.Sprintf("%060d.test", i) }
	spelling := func(i int64) string {
		name := []byte(host)
		for bit := 0; i>>bit > 0; bit++ {
			name[bit] -= byte(i>>bit&1) * ('a' - 'A')
		}
		return string(name)
	}
	kept := func() (n int64) {
		for name, v := range s.envoyStats(t, "on_demand_secret") {
			if strings.HasSuffix(name, "cert_active") {
				n += v
			}
		}
		return n
	}
	for i, name := range []func(int64) string{madeUp, spelling} {
		if n := s.flood(1000, 64, siteTimeout, name); n < 1000 {
			t.Errorf("%d of 1000 clients were answered", n)
		}
		s.kill()
		for sent := int64(0); kept() < names; sent += names / 5 { // some give up before the proxy asks
			if sent > 5*names {
				t.Fatalf("the proxy asks for %d names only", kept())
			}
			s.flood(names/5, 512, 100*time.Millisecond, func(i int64) string { return name(sent + i) })
		}
		s.again(t)
		backend := []string{"v2", "v1"}[i]
		s.write(t, "home.yaml", siteRoute("home", "home.example", backend))
		s.serves(t, "home.example", backend)
		eventually(t, time.Minute, func() error {
			if n := kept(); n > 256+2 {
				return fmt.Errorf("%d names are left", n)
			}
			return nil
		})
	}
}
