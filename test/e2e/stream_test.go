//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// streamServer answers each message of a stream with the same, and ends it with a
// status and a trailer when the client has finished.
type streamServer struct {
	port             int
	messages, closed atomic.Int64
}

func startStreamServer(t *testing.T) *streamServer {
	t.Helper()
	s := &streamServer{}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	server := grpc.NewServer(grpc.UnknownServiceHandler(s.serve))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return s
}

func (s *streamServer) serve(_ any, stream grpc.ServerStream) error {
	for {
		var m wrapperspb.StringValue
		switch err := stream.RecvMsg(&m); {
		case errors.Is(err, io.EOF):
			s.closed.Add(1)
			stream.SetTrailer(metadata.Pairs("x-end", "yes"))
			return status.Error(grpccodes.DataLoss, "as ever")
		case err != nil:
			return err
		}
		s.messages.Add(1)
		if err := stream.SendMsg(&m); err != nil {
			return err
		}
	}
}

func (s *streamServer) manifest(name string) string {
	return grpcBackend.leading(siteNamespace, name, s.port)
}

// TestGRPCStreams protects streams in both directions: messages pass one by one
// while both sides talk, the status and the trailers come at the end, mirrored or
// not, and a mirror sees all of it.
func TestGRPCStreams(t *testing.T) {
	t.Parallel()
	main, copied := startStreamServer(t), startStreamServer(t)
	s := startSite(t, map[string]string{"streams.yaml": main.manifest("main") + copied.manifest("copied") + fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: streams, namespace: %s}
spec:
  parentRefs: [{name: gw}]
  hostnames: [streams.example]
  rules:
  - matches: [{method: {service: a.Plain}}]
    backendRefs: [{name: main, port: 9000}]
  - matches: [{method: {service: a.Mirrored}}]
    filters: [{type: RequestMirror, requestMirror: {backendRef: {name: copied, port: 9000}}}]
    backendRefs: [{name: main, port: 9000}]
`, siteNamespace)})
	conn, err := grpc.NewClient(s.listener(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("streams.example"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const rounds = 20
	for _, service := range []string{"a.Plain", "a.Mirrored"} {
		before := copied.messages.Load()
		ctx, cancel := context.WithTimeout(t.Context(), siteTimeout)
		defer cancel()
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/"+service+"/Talk")
		if err != nil {
			t.Fatal(err)
		}
		for i := range rounds {
			var reply wrapperspb.StringValue
			if err := stream.SendMsg(wrapperspb.String(strconv.Itoa(i))); err != nil {
				t.Fatalf("%s: message %d: %v", service, i, err)
			}
			if err := stream.RecvMsg(&reply); err != nil || reply.GetValue() != strconv.Itoa(i) {
				t.Fatalf("%s: answer %d is %q: %v", service, i, reply.GetValue(), err)
			}
		}
		_ = stream.CloseSend()
		err = stream.RecvMsg(&wrapperspb.StringValue{})
		if status.Code(err) != grpccodes.DataLoss || len(stream.Trailer()["x-end"]) != 1 {
			t.Errorf("%s ends with %v, trailer %v", service, err, stream.Trailer())
		}
		if service == "a.Plain" {
			continue
		}
		deadline := time.Now().Add(siteTimeout)
		for copied.closed.Load() < 1 && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		if n := copied.messages.Load() - before; n != rounds || copied.closed.Load() != 1 {
			t.Errorf("the mirror got %d messages and %d ends, want %d and 1", n, copied.closed.Load(), rounds)
		}
	}
	if n := main.messages.Load(); n != 2*rounds {
		t.Errorf("the backend got %d messages, want %d", n, 2*rounds)
	}
}
