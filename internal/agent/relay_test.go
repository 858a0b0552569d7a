package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/output"
)

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// Whoever has said all that it will is still answered.
func TestJoinHalfClose(t *testing.T) {
	client, a := pair(t)
	b, server := pair(t)
	ended := make(chan struct{})
	go func() { defer close(ended); join(t.Context(), a, b) }()
	if _, err := client.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(server); err != nil || string(got) != "question" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := server.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if got, err := io.ReadAll(client); err != nil || string(got) != "answer" {
		t.Errorf("%q %v", got, err)
	}
	<-ended
}

// One side that fails, or the end of the context, ends both.
func TestJoinEnds(t *testing.T) {
	for name, end := range map[string]func(cancel func(), client *net.TCPConn){
		"context": func(cancel func(), _ *net.TCPConn) { cancel() },
		"reset":   func(_ func(), client *net.TCPConn) { _ = client.SetLinger(0); client.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			client, a := pair(t)
			b, server := pair(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			go func() { defer close(ended); join(ctx, a, b) }()
			end(cancel, client.(*net.TCPConn))
			<-ended
			if _, err := io.ReadAll(server); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			}
		})
	}
}

// A control plane that can't be reached is asked ever less often, however often
// Envoy comes, and the log has few lines of it.
func TestRelayBacksOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []time.Time
	var log output.Buffer
	r := newRelay("the control plane", func(context.Context) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, time.Now())
		return nil, errors.New("nobody is there")
	}, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { r.serve(ctx, l) })
	for r.state().failed < 5 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(conn) // until it is closed
		conn.Close()
	}
	cancel()
	all.Wait()
	// Pauses of at least half of 0.1, 0.2, 0.4 and 0.8 s.
	for i, least := range []time.Duration{50, 100, 200, 400} {
		if gap := asked[i+1].Sub(asked[i]); gap < least*time.Millisecond {
			t.Errorf("try %d came after %s", i+2, gap)
		}
	}
	if n := strings.Count(log.String(), "nobody is there"); n != 3 { // the 1st, 2nd and 4th
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}
