package configserver

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // clients choose it
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote/wire"
)

// Options configure a Server.
type Options struct {
	// Kinds are those that are published; nil is kind.All.
	Kinds *kind.Table
	// Experimental publishes the kinds of the experimental channel too.
	Experimental bool
	Access       Access
	// Statuses, if not nil, gets what clients say that has become of objects; a nil status that there is nothing to say any
	// more. It must not block.
	Statuses func(k object.Key, status any)
	Log      *slog.Logger
}

// Server publishes objects.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	opts    Options
	store   *store
	metrics *metrics
	ending  chan struct{}
	end     func()
}

// New returns a server without objects.
func New(o Options) *Server {
	if o.Kinds == nil {
		o.Kinds = kind.All
	}
	s := &Server{opts: o, store: newStore(wire.TypesOf(o.Kinds, o.Experimental), o.Log), ending: make(chan struct{})}
	s.end = sync.OnceFunc(func() { close(s.ending) })
	s.metrics = newMetrics(s.store)
	return s
}

// Apply takes in a batch of a source. The first one is everything that exists, and is to be
// taken in before Serve.
func (s *Server) Apply(b source.Batch) { s.store.apply(b) }

const (
	// A client that has gone without a word is noticed after these.
	pingAfter   = 30 * time.Second
	pingTimeout = 20 * time.Second
	// Clients may ping as often.
	minPing = 5 * time.Second
	// How long streams get to end before their connections are cut.
	stopTimeout = 2 * time.Second
	// maxHeaders bounds the headers of a stream, in which the token is, in bytes.
	maxHeaders = 16 << 10
	// How long a client may take to show who it is.
	handshakeTime = 10 * time.Second
)

// Serve serves clients until ctx ends.
func (s *Server) Serve(ctx context.Context, lis net.Listener, creds credentials.TransportCredentials) error {
	server := grpc.NewServer(
		grpc.Creds(creds), grpc.ConnectionTimeout(handshakeTime),
		grpc.MaxRecvMsgSize(wire.MaxRequest), grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(4),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout, MaxConnectionIdle: time.Minute}),
	)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, s)
	server.RegisterService(s.statusService(), s)
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		s.end()
		cut := time.AfterFunc(stopTimeout, server.Stop)
		server.GracefulStop()
		cut.Stop()
	})
	err := server.Serve(lis)
	if !stop() {
		<-ended
	}
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// StreamAggregatedResources refuses state-of-the-world streams.
func (s *Server) StreamAggregatedResources(grpc.BidiStreamingServer[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]) error {
	return status.Error(codes.Unimplemented, "only the incremental protocol is served: call DeltaAggregatedResources")
}

// DeltaAggregatedResources is one client's session.
func (s *Server) DeltaAggregatedResources(stream stream) error {
	from, certificate := peerOf(stream.Context())
	who, err := s.opts.Access.admit(certificate, tokenOf(stream.Context()))
	if err != nil {
		s.metrics.denied.Inc()
		s.opts.Log.Warn("a client is refused", "address", from, "error", status.Convert(err).Message())
		return err
	}
	log := s.opts.Log.With("client", who.Name, "address", from)
	log.Info("a client is connected")
	err = s.converse(stream, &session{
		admitted: func() error {
			now, err := s.opts.Access.admit(certificate, tokenOf(stream.Context()))
			if err == nil && !now.Equal(who) {
				err = status.Error(codes.Unavailable, "the client's rights are others now")
			}
			return err
		},
		rights: who.Rights, log: log, types: map[string]*subscription{}, wake: make(chan struct{}, 1),
	})
	log.Info("a client has gone", "error", err)
	return err
}

// peerOf says where a client is, and the certificate that it has shown; nil for none.
func peerOf(ctx context.Context) (address string, certificate *x509.Certificate) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "", nil
	}
	if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.VerifiedChains) > 0 {
		certificate = info.State.VerifiedChains[0][0]
	}
	return p.Addr.String(), certificate
}

// tokenOf returns the bearer token that a client has shown; empty for none.
func tokenOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, value := range md.Get("authorization") {
		if scheme, token, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(token)
		}
	}
	return ""
}
