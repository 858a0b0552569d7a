package configserver

import (
	"errors"
	"io"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote/wire"
)

// statusService takes the statuses that clients tell.
func (s *Server) statusService() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: wire.StatusService, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: wire.StatusStream, ClientStreams: true, ServerStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return s.takeStatuses(stream) },
		}},
	}
}

// takeStatuses takes statuses until the stream ends, of objects that the client may see.
func (s *Server) takeStatuses(stream grpc.ServerStream) error {
	if s.opts.Statuses == nil {
		return status.Error(codes.Unimplemented, "objects of this config server have no statuses")
	}
	from, certificate := peerOf(stream.Context())
	who, err := s.opts.Access.admit(certificate, tokenOf(stream.Context()))
	if err != nil {
		s.metrics.denied.Inc()
		return err
	}
	if !who.Statuses {
		return status.Error(codes.PermissionDenied, "the config server writes no statuses that this client tells")
	}
	log := s.opts.Log.With("client", who.Name, "address", from)
	said, failed := receive(stream.Context(), func() (*discoveryv3.DeltaDiscoveryResponse, error) {
		m := &discoveryv3.DeltaDiscoveryResponse{}
		return m, stream.RecvMsg(m)
	})
	again := time.NewTicker(admitEvery)
	defer again.Stop()
	for {
		select {
		case <-s.ending:
			return status.Error(codes.Unavailable, "the config server is stopping")
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-again.C:
			if now, err := s.opts.Access.admit(certificate, tokenOf(stream.Context())); err != nil || !now.Equal(who) {
				return status.Error(codes.Unavailable, "the client's rights are others now")
			}
		case m := <-said:
			if err := s.noteStatuses(who, m); err != nil {
				log.Warn("a client tells a status that can't be used", "type", m.GetTypeUrl(), "error", bounded(err.Error()))
			}
		}
	}
}

// noteStatuses passes statuses on, and returns what is wrong with the last one that isn't.
func (s *Server) noteStatuses(who Client, m *discoveryv3.DeltaDiscoveryResponse) (wrong error) {
	of := s.store.types[m.GetTypeUrl()]
	if of == nil || of.Status == nil {
		return errors.New("there are no statuses of this type")
	}
	d := of.Descriptor
	key := func(text string) (object.Key, bool) {
		name, ok := wire.ParseName(d, text)
		if ok = ok && who.tells(d.Kind, name); !ok {
			wrong = errors.New("it may say nothing of " + text)
		}
		return object.Key{Kind: d.Kind, Name: name}, ok
	}
	for _, r := range m.GetResources() {
		k, ok := key(r.GetName())
		if !ok {
			continue
		}
		status, err := wire.Status(d, r)
		if err != nil {
			wrong = err
			continue
		}
		s.opts.Statuses(k, status)
	}
	for _, name := range m.GetRemovedResources() {
		if k, ok := key(name); ok {
			s.opts.Statuses(k, nil)
		}
	}
	return wrong
}
