package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	// Requests within the bounds of package descriptor may be longer. Those of proxies are not.
	maxRequest = 4 << 20
	maxHeaders = 16 << 10
	// Of one connection. Envoy has some for each of its workers, and waits beyond this.
	maxStreams = 4096

	// A gRPC server closes connections with pings more frequent than every 5 minutes unless
	// it is configured otherwise. Connections to proxies that are gone end by ours.
	minPing     = 5 * time.Second
	pingAfter   = 30 * time.Second
	pingTimeout = 20 * time.Second

	// How long requests get to end before their connections are cut.
	stopTimeout = 2 * time.Second

	logInterval = 10 * time.Second
)

// Options say what a server is for.
type Options struct {
	Gateway object.Name // whose proxies count here; a label of the metrics
	Store   Store       // of that Gateway alone; it stays the caller's to close
	Log     *slog.Logger
}

// A Server judges requests for the proxies of one Gateway.
type Server struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	store   Store
	log     *slog.Logger
	gateway object.Name
	metrics *metrics
	buffers sync.Pool // of *buffer

	malformed rate.Sometimes // log lines
	outage    outage
	last      atomic.Pointer[error] // of Follow
}

// buffer is what a request needs while it is judged.
type buffer struct {
	hits     []Hit
	verdicts []Verdict
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{
		store:     o.Store,
		log:       o.Log,
		gateway:   o.Gateway,
		metrics:   newMetrics(o.Gateway.String(), o.Store),
		buffers:   sync.Pool{New: func() any { return new(buffer) }},
		malformed: rate.Sometimes{First: 1, Interval: logInterval},
		outage:    outage{log: o.Log, gateway: o.Gateway},
	}
	s.metrics.collectors = append(s.metrics.collectors, s.outage.collector())
	return s
}

// Serve serves whoever dials the listener, which must be reachable for the Gateway's
// proxies only, or have the options that make it so (credentials that ask for their
// certificate). It closes the listener and returns nil when the context ends.
func (s *Server) Serve(ctx context.Context, lis net.Listener, options ...grpc.ServerOption) error {
	server := grpc.NewServer(append(options,
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
	)...)
	ratelimitv3.RegisterRateLimitServiceServer(server, s)

	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		<-ctx.Done()
		cut := time.AfterFunc(stopTimeout, server.Stop)
		server.GracefulStop()
		cut.Stop()
	})
	defer func() {
		cancel()
		ended.Wait()
	}()
	if err := server.Serve(lis); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve rate limits for Gateway %s: %w", s.gateway, err)
	}
	return nil
}

// ShouldRateLimit judges a request.
func (s *Server) ShouldRateLimit(ctx context.Context, req *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	began := time.Now()
	b := s.buffers.Get().(*buffer)
	defer s.buffers.Put(b)

	var err error
	if b.hits, err = readHits(req, b.hits[:0]); err != nil {
		s.metrics.malformed.Inc()
		s.malformed.Do(func() {
			s.log.Warn("A proxy asks for a rate limit that can't be read", "gateway", s.gateway, "error", err)
		})
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	b.verdicts = append(b.verdicts[:0], make([]Verdict, len(b.hits))...)
	refused, err := s.store.Take(ctx, b.hits, b.verdicts)
	if err != nil {
		return nil, s.fail(ctx, err)
	}
	s.outage.answers()
	s.metrics.count(req, b, refused, time.Since(began))
	return answer(b, refused), nil
}

// fail returns the error for a store that did not answer.
func (s *Server) fail(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return status.FromContextError(ctx.Err()).Err() // nobody waits for it
	}
	s.metrics.failures.Inc()
	s.outage.fails(err)
	return status.Error(codes.Unavailable, "the store of rate limits fails")
}

// answer makes a response of verdicts.
func answer(b *buffer, refused bool) *ratelimitv3.RateLimitResponse {
	r := &ratelimitv3.RateLimitResponse{
		OverallCode: ratelimitv3.RateLimitResponse_OK,
		Statuses:    make([]*ratelimitv3.RateLimitResponse_DescriptorStatus, len(b.hits)),
		// What Envoy's local limits call x-ratelimit.
		ResponseHeadersToAdd: headersOf(b.hits, b.verdicts),
	}
	if refused {
		r.OverallCode = ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	for i := range b.hits {
		h, v := &b.hits[i], &b.verdicts[i]
		code := ratelimitv3.RateLimitResponse_OK
		if v.Over && h.Mode == Enforced {
			code = ratelimitv3.RateLimitResponse_OVER_LIMIT
		}
		r.Statuses[i] = &ratelimitv3.RateLimitResponse_DescriptorStatus{
			Code:               code,
			LimitRemaining:     v.remaining(h.Rate),
			DurationUntilReset: durationpb.New(v.Reset),
		}
	}
	return r
}
