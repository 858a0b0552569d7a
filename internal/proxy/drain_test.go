package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"sync"
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
	cfg := testConfig(shortDir(t))
	cfg.DrainTimeout = drain
	addr := freeAddr(t)
	(&adsServer{listeners: [][]byte{httpListener("edge", addr)}}).serve(t, cfg.XDSSocket)
	r := run(t, cfg)
	r.until("live", live)
	return r, addr
}

// Clients under way lose nothing when the supervisor stops, and it stops as
// soon as the last has gone.
func TestDrainLosesNothing(t *testing.T) {
	r, addr := serving(t, patience)
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
	began := time.Now()
	r.stop()
	ended.Wait()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopped after %s", took)
	}
}

// An idle connection does not hold up the end for longer than it may.
func TestDrainIsBounded(t *testing.T) {
	const bound = 500 * time.Millisecond
	r, addr := serving(t, bound)
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.activeConnections(t.Context()); err != nil || n != 1 {
		t.Errorf("%d connections: %v", n, err)
	}
	began := time.Now()
	r.stop()
	if took := time.Since(began); took < bound || took > bound+2*time.Second {
		t.Errorf("stopped after %s", took)
	}
}
