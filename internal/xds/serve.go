package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	otlpcollectorv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

const (
	// A proxy that connects again names all that it has in one request: about 100 bytes
	// for each resource.
	maxRequest = 32 << 20

	// A connection without a stream is of no use to a proxy.
	maxIdle = time.Minute
	// An Envoy's headers take some hundred bytes.
	maxHeaders = 16 << 10

	// By default a connection takes 32 kB for each. What an Envoy says is short but for its first words, and a record
	// of TLS has 16 kB at the most.
	readBuffer  = 4 << 10
	writeBuffer = 16 << 10

	// Envoy pings every 30 s. A gRPC server closes connections with pings more frequent
	// than every 5 minutes unless it is configured otherwise.
	minPing = 5 * time.Second

	// A proxy that has been silent for this long is asked for a sign of life. The
	// question is one of ours at the same time: an agent that gets none takes this
	// process for one that stands still (agent.silenceLimit).
	pingAfter = time.Second
	// How long an old connection has for calls under way, once it takes no new ones.
	ageGrace = 2 * time.Second

	// Envoy's main thread answers nothing while it takes in a large configuration, and
	// for longer where its machine is busy.
	pingTimeout = 30 * time.Second

	// How long streams get to end before their connections are cut.
	stopTimeout = 2 * time.Second
)

// Serve serves a Gateway's configuration to whoever dials the listener, which
// must be reachable for the Gateway's proxies only. It closes the listener and
// returns nil when the context ends or the server stops.
func (s *Server) Serve(ctx context.Context, lis net.Listener, gateway object.Name) error {
	g := s.enter(gateway, "")
	defer s.leave(g)
	if err := s.serve(ctx, lis, &discovery{server: s, gateway: g}); err != nil {
		return fmt.Errorf("serve xDS for Gateway %s: %w", gateway, err)
	}
	return nil
}

func (s *Server) serve(ctx context.Context, lis net.Listener, service *discovery, options ...grpc.ServerOption) error {
	service.ending = make(chan struct{})
	server := grpc.NewServer(append([]grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: pingAfter, Timeout: pingTimeout, MaxConnectionIdle: maxIdle, MaxConnectionAge: s.maxAge, MaxConnectionAgeGrace: ageGrace,
		}),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.ReadBufferSize(readBuffer), grpc.WriteBufferSize(writeBuffer),
	}, options...)...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, service)
	otlpcollectorv1.RegisterMetricsServiceServer(server, &counting{of: service})

	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-s.stop:
		}
		service.end(server)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	if err := server.Serve(lis); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// discovery is the service behind one listener.
type discovery struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	server  *Server
	gateway *gateway // whose listener it is; nil if the certificates tell
	ending  chan struct{}
}

// end waits for the streams to end, and cuts those from which a proxy does not read.
func (d *discovery) end(server *grpc.Server) {
	close(d.ending)
	cut := time.AfterFunc(stopTimeout, server.Stop)
	server.GracefulStop()
	cut.Stop()
}

// StreamAggregatedResources refuses state-of-the-world streams.
func (d *discovery) StreamAggregatedResources(grpc.BidiStreamingServer[discoveryv3.DiscoveryRequest, discoveryv3.DiscoveryResponse]) error {
	return status.Error(codes.Unimplemented,
		"only the delta protocol is served: set api_type to DELTA_GRPC in the bootstrap's ads_config")
}

type stream = grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]

// DeltaAggregatedResources is one proxy's session.
func (d *discovery) DeltaAggregatedResources(stream stream) error {
	if d.gateway != nil {
		return d.converse(stream, d.gateway, nil)
	}
	c, err := connectionOf(stream.Context())
	if err != nil {
		return err
	}
	g := d.server.enter(c.gateway, c.revision())
	defer d.server.leave(g)
	return d.converse(stream, g, c)
}

// converse runs the session of one proxy of a Gateway. The connection is nil if it has no
// certificate.
func (d *discovery) converse(stream stream, g *gateway, c *connection) error {
	now := time.Now()
	s := newSession(g, d.server.nextID(), now)
	var unknown <-chan time.Time
	if c != nil {
		s.pod, s.certificateEnds = c.pod, c.expires()
		timer := time.NewTimer(d.server.unknownTimeout)
		defer timer.Stop()
		unknown = timer.C
	}
	g.attach(s, now)
	defer s.close()

	requests, failed := receive(stream)
	for {
		select {
		case <-d.ending:
			return status.Error(codes.Unavailable, "the control plane is stopping")
		case <-stream.Context().Done():
			return stream.Context().Err()
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-unknown:
			if !g.isLoaded() {
				c.cut("")
			}
		case req := <-requests:
			if err := s.handle(req, c); err != nil {
				return err
			}
			// A proxy that connects again asks for all types at once: all its requests are
			// read before anything is answered.
			for more := true; more; {
				select {
				case req := <-requests:
					if err := s.handle(req, c); err != nil {
						return err
					}
				default:
					more = false
				}
			}
		case <-s.wake:
		}
		if err := d.push(stream, s); err != nil {
			return err
		}
	}
}

// handle handles a request, unless its node is another Gateway's.
func (s *session) handle(req *discoveryv3.DeltaDiscoveryRequest, c *connection) error {
	if c != nil {
		if err := c.checkNode(req.GetNode()); err != nil {
			return err
		}
	}
	return s.receive(req, time.Now())
}

// receive passes a stream's requests on until it ends.
func receive(stream stream) (<-chan *discoveryv3.DeltaDiscoveryRequest, <-chan error) {
	requests := make(chan *discoveryv3.DeltaDiscoveryRequest, 4)
	failed := make(chan error, 1)
	go func() {
		for {
			req, err := stream.Recv()
			if err != nil {
				failed <- err
				return
			}
			select {
			case requests <- req:
			case <-stream.Context().Done():
				return
			}
		}
	}()
	return requests, failed
}

// push sends until there is nothing left to send.
func (d *discovery) push(stream stream, s *session) error {
	for {
		plan := s.plan(time.Now())
		if len(plan) == 0 {
			return nil
		}
		for _, f := range plan {
			m := d.server.response(s.gateway, f)
			size := m.pieces.Len()
			if err := stream.SendMsg(m); err != nil {
				return err
			}
			t := d.server.nameOf(f.typ)
			d.server.metrics.pushes.WithLabelValues(t).Inc()
			d.server.metrics.bytes.WithLabelValues(t).Add(float64(size))
		}
	}
}
