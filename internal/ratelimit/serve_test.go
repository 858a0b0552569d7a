package ratelimit

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// connect returns a client of its own connection to a socket.
func connect(t *testing.T, socket string) ratelimitv3.RateLimitServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return ratelimitv3.NewRateLimitServiceClient(conn)
}

// serve serves on a Unix socket. The channel has the result when the server has ended.
func serve(t *testing.T, ctx context.Context, s *Server) (socket string, served <-chan error) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "limits.sock")
	lis, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, lis) }()
	return socket, ended
}

// Two proxies that send a thousand requests at once get through as many as one would.
func TestTwoProxiesCountTogether(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	socket, served := serve(t, ctx, newServer(t, NewMemory()))
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		client := connect(t, socket)
		for range 10 {
			wg.Go(func() {
				for range 50 {
					r, err := client.ShouldRateLimit(ctx, check(desc("a", "100/10m")))
					if err != nil {
						t.Error(err)
						return
					}
					if r.GetOverallCode() == ratelimitv3.RateLimitResponse_OK {
						passed.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	if n := passed.Load(); n != 100 {
		t.Errorf("%d were let through, not 100", n)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// stuck is a store that answers when the test ends.
type stuck struct {
	asked   chan struct{}
	release chan struct{}
}

func (s stuck) Take(context.Context, []Hit, []Verdict) (bool, error) {
	close(s.asked)
	<-s.release
	return false, nil
}
func (s stuck) Close() error { return nil }

// A server that is to stop does, though a request waits for a store that hangs.
func TestServeStopsWithARequestInFlight(t *testing.T) {
	store := stuck{make(chan struct{}), make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	socket, served := serve(t, ctx, newServer(t, store))
	client := connect(t, socket)
	answered := make(chan error, 1)
	go func() {
		_, err := client.ShouldRateLimit(t.Context(), check(desc("a", "1/1h")))
		answered <- err
	}()
	<-store.asked
	began := time.Now()
	cancel()
	select {
	case err := <-answered:
		if err == nil {
			t.Error("the request is answered though its store hangs")
		}
	case <-time.After(patience):
		t.Error("the request is not cut")
	}
	if took := time.Since(began); took < stopTimeout {
		t.Errorf("the request was cut after %s, not %s", took, stopTimeout)
	}
	close(store.release)
	if err := <-served; err != nil {
		t.Error(err)
	}
}
