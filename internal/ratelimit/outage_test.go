package ratelimit

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/test/output"
)

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("there is never %s", what)
		}
	}
}

// Two servers on one Redis count together while they are under load, let exactly the limit
// through, and say Unavailable while it is gone. That is told once, and so is its end, which
// comes by itself.
func TestRedisOutageUnderLoad(t *testing.T) {
	redis := startRedis(t)
	logged := &output.Buffer{}
	var servers [2]*Server
	var clients [2]ratelimitv3.RateLimitServiceClient
	for i := range servers {
		store := redis.store(t, gatewayName)
		t.Cleanup(func() { store.Close() })
		servers[i] = New(Options{Gateway: gatewayName, Store: store, Log: slog.New(slog.NewTextHandler(logged, nil))})
		clients[i] = dial(t, servers[i])
	}

	var passed atomic.Int64
	var senders sync.WaitGroup
	for i := range 20 {
		senders.Go(func() {
			for range 50 {
				passed.Add(int64(passes(t, clients[i%2], check(desc("exact", "100/1h")))))
			}
		})
	}
	senders.Wait()
	if passed.Load() != 100 {
		t.Errorf("of 1,000 requests to two servers %d were let through, not 100", passed.Load())
	}

	ctx, end := context.WithCancel(t.Context())
	defer senders.Wait()
	defer end()
	var counted, failed [2]atomic.Int64
	for i := range 8 {
		senders.Go(func() {
			for ctx.Err() == nil {
				_, err := clients[i%2].ShouldRateLimit(ctx, check(desc("load", "4000000/1h")))
				switch {
				case err == nil:
					counted[i%2].Add(1)
				case ctx.Err() == nil && status.Code(err) == codes.Unavailable:
					failed[i%2].Add(1)
				case ctx.Err() == nil:
					t.Errorf("a request ends in %v", err)
				}
			}
		})
	}
	more := func(n *[2]atomic.Int64) func() bool {
		first, second := n[0].Load(), n[1].Load()
		return func() bool { return n[0].Load() > first+10 && n[1].Load() > second+10 }
	}
	until(t, "a request that is counted", more(&counted))
	redis.kill(t)
	until(t, "a failure", more(&failed))
	for _, s := range servers {
		if gather(t, s)["failing"] != 1 {
			t.Error("the metrics don't say that counting fails")
		}
	}
	redis.start(t)
	until(t, "a request that is counted again", more(&counted))
	until(t, "the end of the outage in the log", func() bool { return strings.Count(logged.String(), "Requests are counted again") == 2 })
	if n := strings.Count(logged.String(), "Requests can't be counted"); n != 2 || strings.Count(logged.String(), redis.address) < 2 {
		t.Errorf("the log has %d beginnings of an outage, not one of each server with the address:\n%s", n, logged.String())
	}
	for _, s := range servers {
		if gather(t, s)["failing"] != 0 {
			t.Error("the metrics say that counting still fails")
		}
	}
}

// Whoever counts says so once it can, no longer when its store fails, and again when that has come
// back: also where no request comes.
func TestFollow(t *testing.T) {
	redis := startRedis(t)
	redis.kill(t)
	s := newServer(t, redis.store(t, gatewayName))
	if s.Counts() == nil {
		t.Error("a server counts that has not asked its store")
	}
	var following sync.WaitGroup
	defer following.Wait()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	following.Go(func() { s.Follow(ctx) })
	for range 2 {
		until(t, "a failure", func() bool { return s.outage.on.Load() })
		until(t, "a server that does not count", func() bool { return s.Counts() != nil })
		redis.start(t)
		until(t, "a server that counts", func() bool { return s.Counts() == nil })
		until(t, "the end of the outage", func() bool { return !s.outage.on.Load() })
		redis.kill(t)
	}
}
