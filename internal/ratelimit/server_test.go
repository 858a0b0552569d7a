package ratelimit

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"testing"
	"time"

	ratelimitcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/ratelimit/descriptor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var gatewayName = object.Name{Namespace: "shop", Name: "edge"}

// desc is a descriptor: limit, rate, and keys and values of counters.
func desc(limit, rate string, counters ...string) *ratelimitcommonv3.RateLimitDescriptor {
	d := &ratelimitcommonv3.RateLimitDescriptor{}
	add := func(k, v string) {
		d.Entries = append(d.Entries, &ratelimitcommonv3.RateLimitDescriptor_Entry{Key: k, Value: v})
	}
	add(descriptor.KeyLimit, limit)
	add(descriptor.KeyRate, rate)
	for i := 0; i+1 < len(counters); i += 2 {
		add(counters[i], counters[i+1])
	}
	return d
}

// times gives a descriptor hits of its own.
func times(n uint64, d *ratelimitcommonv3.RateLimitDescriptor) *ratelimitcommonv3.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

func check(d ...*ratelimitcommonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: descriptor.Domain, Descriptors: d}
}

// charge adds what has been used already.
func charge(d ...*ratelimitcommonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
	for _, d := range d {
		d.Entries = slices.Insert(d.Entries, 2, &ratelimitcommonv3.RateLimitDescriptor_Entry{Key: descriptor.KeyCharge, Value: descriptor.On})
	}
	return check(d...)
}

func newServer(t testing.TB, store Store) *Server {
	t.Helper()
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(Options{Gateway: gatewayName, Store: store, Log: slog.New(slog.DiscardHandler)})
}

// dial serves on a loopback port until the test ends, and returns a client.
func dial(t testing.TB, s *Server) ratelimitv3.RateLimitServiceClient {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, lis) }()
	conn, err := grpc.NewClient(lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		cancel()
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the server does not stop")
		}
	})
	return ratelimitv3.NewRateLimitServiceClient(conn)
}

func TestServerCountsOverGRPC(t *testing.T) {
	client := dial(t, newServer(t, NewMemory()))
	passed := 0
	for range 10 {
		r, err := client.ShouldRateLimit(t.Context(), check(desc("a", "3/1h", "client", "192.0.2.1")))
		if err != nil {
			t.Fatal(err)
		}
		if r.GetOverallCode() == ratelimitv3.RateLimitResponse_OK {
			passed++
		}
	}
	if passed != 3 {
		t.Errorf("%d of 10 were let through, not 3", passed)
	}
}

// passes is 1 if a request is let through.
func passes(t testing.TB, c ratelimitv3.RateLimitServiceClient, req *ratelimitv3.RateLimitRequest) int {
	t.Helper()
	r, err := c.ShouldRateLimit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if r.GetOverallCode() == ratelimitv3.RateLimitResponse_OK {
		return 1
	}
	return 0
}
