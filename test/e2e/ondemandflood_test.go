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

// flood has many clients ask for server names that nobody has, one connection for each, which they give up
// after a time. It returns how many got an answer.
func (s *site) flood(names, clients int, patience time.Duration) int64 {
	template := strings.Repeat("q", 60) + ".test"
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
				_, _ = conn.Write(bytes.Replace(first, []byte(template), fmt.Appendf(nil, "%0*d.test", len(template)-len(".test"), i), 1))
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

// TestOnDemandFlood protects a proxy from clients that make up server names: they are answered and leave
// nothing, and those that come while there is no controller don't keep the proxy from the next one.
func TestOnDemandFlood(t *testing.T) {
	slow.Skip(t)
	const names = 25_000
	s := onDemandSite(t, 1)
	kept := func() (n int64) {
		for name, v := range s.envoyStats(t, "on_demand_secret") {
			if strings.HasSuffix(name, "cert_active") {
				n += v
			}
		}
		return n
	}
	before := kept()
	if n := s.flood(names, 64, siteTimeout); n < names {
		t.Errorf("%d of %d clients were answered", n, names)
	}
	s.kill()
	s.flood(names, 512, 100*time.Millisecond)
	if n := kept(); n < 21_000 {
		t.Fatalf("the proxy asks for %d names only", n)
	}
	s.again(t)
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v2"))
	s.serves(t, "home.example", "v2")
	eventually(t, siteTimeout, func() error {
		if n := kept(); n > before {
			return fmt.Errorf("%d names are left, %d before", n, before)
		}
		return nil
	})
}
