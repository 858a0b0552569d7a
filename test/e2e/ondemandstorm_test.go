//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// stormClients keep connections to a host for as long as the proxy lets them, and then make new ones. An answer
// that isn't 200 is wrong at any time. What else goes wrong, is wrong unless excused.
type stormClients struct {
	asked, conns  atomic.Int64
	mu            sync.Mutex
	wrong         []string
	noHandshakes  atomic.Bool // the control plane is away: who hasn't asked for a host yet can't
	noConnections atomic.Bool // the proxy is away
	stop          chan struct{}
	done          sync.WaitGroup
}

func (c *stormClients) run(t *testing.T, s *site, host string) {
	address := net.JoinHostPort(s.address, strconv.Itoa(443+portOffset))
	fail := func(excused bool, err error) {
		if excused {
			time.Sleep(5 * time.Millisecond) // the machine has other work
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.wrong = append(c.wrong, time.Now().Format(time.TimeOnly+".000 ")+err.Error())
	}
	for {
		excused := c.noHandshakes.Load() || c.noConnections.Load()
		var served []string
		conn, err := dialTLS(t.Context(), address, host, &served)
		if err != nil {
			fail(excused || c.noHandshakes.Load() || c.noConnections.Load(), fmt.Errorf("handshake: %w", err))
		} else {
			c.conns.Add(1)
			held := &heldConn{conn, bufio.NewReader(conn)}
			for last := false; !last && err == nil; {
				select {
				case <-c.stop:
					_ = conn.Close()
					return
				default:
				}
				excused = c.noConnections.Load()
				if _, last, err = held.ask(host); err != nil {
					fail((excused || c.noConnections.Load()) && !strings.Contains(err.Error(), "status"), err)
				}
				c.asked.Add(1)
			}
			_ = conn.Close()
		}
		select {
		case <-c.stop:
			return
		default:
		}
	}
}

// awaitMore waits until so many more requests have been made.
func (c *stormClients) awaitMore(t *testing.T, requests int64) {
	t.Helper()
	until := c.asked.Load() + requests
	eventually(t, siteTimeout, func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if now := c.asked.Load(); now < until && len(c.wrong) == 0 {
			return fmt.Errorf("%d requests are still to be made", until-now)
		}
		return nil
	})
}

// TestOnDemandStorm protects a host that stays from all that happens to others at once: listeners that come and go,
// ports that change their form again and again, Secrets that are broken and whole, a control plane and a
// proxy that are killed at any moment of it, or stand still.
func TestOnDemandStorm(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	const most, rounds = 8, 150
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	https := func(name string, port int, hostname, secret string) string {
		return fmt.Sprintf("{name: %s, port: %d, protocol: HTTPS, hostname: %q, tls: {certificateRefs: [{name: %s}]}}", name, port, hostname, secret)
	}
	files := numberedHosts(t, most)
	files["shards.yaml"] = onDemandAbove(1)
	s := startSite(t, files)
	s.serveNames(t, most, true)
	clients := &stormClients{stop: make(chan struct{})}
	for range 6 {
		clients.done.Go(func() { clients.run(t, s, "h0.test") })
	}
	for round := range rounds {
		switch random.IntN(4) {
		case 0:
			s.write(t, "shards.yaml", onDemandAbove([]int{0, 1, 2, 4, 12}[random.IntN(5)]))
		case 1:
			listeners := []string{"{name: http, port: 80, protocol: HTTP}", https("h0", 443, "h0.test", "h0")}
			for i := 1; i < most; i++ {
				if random.IntN(3) > 0 {
					listeners = append(listeners, https(fmt.Sprint("h", i), []int{443, 443, 8443}[random.IntN(3)], fmt.Sprintf("h%d.test", i), fmt.Sprint("h", i)))
				}
			}
			if random.IntN(3) == 0 {
				listeners = append(listeners, https("wild", 443, []string{"*.test", "*.other.test"}[random.IntN(2)], "h1"))
			}
			s.write(t, "gateway.yaml", withShards(siteGateway(listeners...)))
		case 2:
			secrets := mustSecret(t, "h0", "h0.test")
			for i := 1; i < most; i++ {
				name := fmt.Sprint("h", i)
				switch random.IntN(4) {
				case 0: // none
				case 1:
					secrets += mustSecret(t, name, "somebody.else")
				case 2:
					secrets += strings.Replace(mustSecret(t, name, name+".test"), "tls.crt: ", "tls.crt: AAAA", 1)
				default:
					secrets += mustSecret(t, name, name+".test")
				}
			}
			s.write(t, "secrets.yaml", secrets)
		case 3:
			s.write(t, "home.yaml", siteRoute("home", "home.example, h0.test"+strings.Repeat(", h1.test", random.IntN(2)), []string{"v1", "v2"}[random.IntN(2)]))
		}
		clients.awaitMore(t, int64(random.IntN(100))) // any moment of it
		switch random.IntN(16) {
		case 0, 1, 2:
			clients.noHandshakes.Store(true)
			s.kill()
			s.again(t)
			s.answers(t, "http://home.example/", 200)
			s.settleNames(t)
			clients.noHandshakes.Store(false)
		case 3:
			pid := s.envoyPID(t)
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
			_ = syscall.Kill(pid, syscall.SIGCONT)
		case 4:
			clients.noConnections.Store(true)
			_ = syscall.Kill(s.envoyPID(t), syscall.SIGKILL)
			s.answers(t, "http://home.example/", 200)
			s.settleNames(t)
			clients.noConnections.Store(false)
		}
		if clients.mu.Lock(); len(clients.wrong) > 0 {
			t.Errorf("round %d", round)
			clients.mu.Unlock()
			break
		}
		clients.mu.Unlock()
	}
	close(clients.stop)
	clients.done.Wait()
	for _, w := range clients.wrong[:min(10, len(clients.wrong))] {
		t.Error(w)
	}
	t.Logf("%d requests by %d connections", clients.asked.Load(), clients.conns.Load())
	for name, content := range files {
		s.write(t, name, content)
	}
	s.serveNames(t, most, true)
}

// settleNames waits until the host that stays is served.
func (s *site) settleNames(t *testing.T) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		var served []string
		conn, err := dialTLS(t.Context(), net.JoinHostPort(s.address, strconv.Itoa(443+portOffset)), "h0.test", &served)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
