package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// client sends requests over one keep-alive connection until the server says
// close, and counts answers and failures.
func client(addr net.Addr, first func()) (answers int, err error) {
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			return answers, err
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return answers, err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return answers, fmt.Errorf("status %d", resp.StatusCode)
		}
		if answers++; answers == 1 {
			first()
		}
		if resp.Close {
			return answers, nil
		}
	}
}

func serving(t *testing.T, drain time.Duration) (*running, net.Addr) {
	t.Helper()
	return servingSlowly(t, drain, 0)
}

func servingSlowly(t *testing.T, drain, delay time.Duration) (*running, net.Addr) {
	t.Helper()
	cfg := testConfig(shortDir(t))
	cfg.DrainTimeout = drain
	addr := freeAddr(t)
	(&adsServer{listeners: [][]byte{httpListener("edge", addr, delay)}}).serve(t, cfg.XDSSocket)
	r := run(t, cfg)
	r.until("live", live)
	return r, addr
}

// Clients under way lose nothing when the supervisor stops, and it stops as
// soon as the last has gone.
func TestDrainLosesNothing(t *testing.T) {
	r, addr := serving(t, time.Hour)
	var sending, ended sync.WaitGroup
	for range 4 {
		sending.Add(1)
		ended.Go(func() {
			if n, err := client(addr, sending.Done); err != nil {
				t.Errorf("after %d answers: %v", n, err)
			}
		})
	}
	sending.Wait()
	r.stop()
	ended.Wait()
}

// Requests that begin while it drains are answered or refused, never cut: with
// clients that come again and again, that is what the end looks like to them.
func TestDrainCutsNobody(t *testing.T) {
	const delay = 300 * time.Millisecond
	var h1, h2 http.Protocols
	h1.SetHTTP1(true)
	h2.SetUnencryptedHTTP2(true)
	for name, protocols := range map[string]*http.Protocols{"HTTP/1": &h1, "HTTP/2": &h2} {
		t.Run(name, func(t *testing.T) {
			r, addr := servingSlowly(t, time.Hour, delay)
			var sending, ended sync.WaitGroup
			for range 4 {
				sending.Add(1)
				ended.Go(func() {
					transport := &http.Transport{Protocols: protocols}
					defer transport.CloseIdleConnections()
					if n, err := untilRefused(transport, addr, sending.Done); err != nil {
						t.Errorf("after %d answers: %v", n, err)
					}
				})
			}
			sending.Wait()
			r.stop()
			ended.Wait()
		})
	}
}

// untilRefused sends one request after another until a connection is refused.
func untilRefused(transport *http.Transport, addr net.Addr, first func()) (answers int, err error) {
	client := http.Client{Transport: transport, Timeout: patience}
	for {
		resp, err := client.Get("http://" + addr.String())
		if errors.Is(err, syscall.ECONNREFUSED) {
			return answers, nil
		}
		if err != nil {
			return answers, err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return answers, fmt.Errorf("status %d", resp.StatusCode)
		}
		if answers++; answers == 1 {
			first()
		}
	}
}

// Whoever is in a hurry does not wait for clients.
func TestHurry(t *testing.T) {
	for name, when := range map[string]Phase{"while it drains": PhaseDraining, "before": PhaseRunning} {
		t.Run(name, func(t *testing.T) {
			r, addr := servingSlowly(t, time.Hour, time.Hour)
			unanswered(t, r, addr)
			if when == PhaseDraining {
				r.cancel()
				r.until("draining", func(s State) bool { return s.Phase == when })
			}
			r.Hurry()
			r.stop()
		})
	}
}

func TestNegativeDrainTimeout(t *testing.T) {
	cfg := testConfig(shortDir(t))
	cfg.DrainTimeout = -time.Second
	for name, err := range map[string]error{"Run": New(cfg).Run(t.Context()), "StopLeftover": StopLeftover(t.Context(), cfg)} {
		if err == nil || !strings.Contains(err.Error(), "negative") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A request does not hold up the end for longer than it may.
func TestDrainIsBounded(t *testing.T) {
	const bound = 500 * time.Millisecond
	r, addr := servingSlowly(t, bound, time.Hour)
	unanswered(t, r, addr)
	began := time.Now()
	r.stop()
	if took := time.Since(began); took < bound {
		t.Errorf("stopped after %s", took)
	}
}

// One that stays idle is not waited for until the bound.
func TestDrainLeavesIdleConnections(t *testing.T) {
	r, addr := serving(t, time.Hour)
	idle(t, addr)
	want := clients{connections: 1, http: 1}
	if got, err := r.activeClients(t.Context()); err != nil || got != want {
		t.Errorf("clients are %+v, want %+v: %v", got, want, err)
	}
	began := time.Now()
	r.stop()
	if took := time.Since(began); took < drainIdle {
		t.Errorf("stopped after %s", took)
	}
}

// A request that is slower than that is.
func TestDrainWaitsForSlowRequests(t *testing.T) {
	r, addr := servingSlowly(t, time.Minute, drainIdle+time.Second)
	answer := make(chan error, 1)
	go func() {
		resp, err := http.Get("http://" + addr.String())
		if err == nil {
			resp.Body.Close()
		}
		answer <- err
	}()
	r.untilAsked()
	r.stop()
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

// untilAsked waits for a request without an answer.
func (r *running) untilAsked() {
	r.t.Helper()
	waitFor(r.t, "asked", func() bool {
		c, err := r.activeClients(r.t.Context())
		return err == nil && c.requests == 1
	})
}

// ask sends a request over a connection that stays open.
func ask(t *testing.T, addr net.Addr) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return conn
}

// unanswered is a client that has sent a request.
func unanswered(t *testing.T, r *running, addr net.Addr) {
	t.Helper()
	ask(t, addr)
	r.untilAsked()
}

// idle is a client that has had an answer and keeps its connection.
func idle(t *testing.T, addr net.Addr) {
	t.Helper()
	if _, err := ask(t, addr).Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}
