package remote_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote"
)

// TestDamagedStateIsNotServed protects that a state of which a part is lost waits for the server: a guard may be in that part.
func TestDamagedStateIsNotServed(t *testing.T) {
	server, dir := &serving{t: t}, t.TempDir()
	server.begin(source.Batch{Set: []source.Object{made(0, "a", 0, 0), made(0, "b", 0, 0), made(0, "c", 0, 0)}})
	c := subscribe(t, server.address, dir)
	until(t, "all is there", func() bool { return len(c.has()) == 3 })
	c.stop()
	server.stop()
	files, err := filepath.Glob(filepath.Join(dir, "remote-*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.LastIndex(text, []byte("HTTPRoute")); at >= 0 {
			damaged, text[at] = true, 'X'
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !damaged {
		t.Fatalf("nothing is kept in %v", files)
	}
	s, err := remote.New(remote.Options{Address: server.address, TLS: remote.TLS{Plaintext: true}, StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c = &client{t: t, objects: map[object.Key]source.Object{}, bad: map[string][]source.Problem{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, c.take) }()
	until(t, "the server is missed", func() bool { return s.State().Error != "" })
	if has := c.has(); len(has) > 0 {
		t.Errorf("of a damaged state these are served: %v", has)
	}
	server.begin(source.Batch{Set: []source.Object{made(0, "a", 0, 1), made(0, "b", 0, 0)}})
	until(t, "the server's state is in force", func() bool { return len(c.has()) == 2 })
	server.stop()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	c = subscribe(t, server.address, dir) // what is kept now is whole
	until(t, "what is kept is there", func() bool { return len(c.has()) == 2 })
	c.stop()
}

// TestAskedWrongly protects what a server answers to what no client of ours asks: it is told, and what isn't published
// here any more is named as gone.
func TestAskedWrongly(t *testing.T) {
	server := &serving{t: t}
	server.begin(source.Batch{})
	defer server.stop()
	conn, err := grpc.NewClient(server.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ask := func(requests ...*discoveryv3.DeltaDiscoveryRequest) (*discoveryv3.DeltaDiscoveryResponse, error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), longest)
		defer cancel()
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range requests {
			r.ResourceNamesSubscribe = []string{"*"}
			if err := stream.Send(r); err != nil {
				t.Fatal(err)
			}
		}
		for {
			response, err := stream.Recv()
			if err != nil || len(requests) == 1 {
				return response, err
			}
		}
	}
	if _, err := ask(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: "gatehouse.dev/v9/AuthPolicy"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a guard of an unknown version: %v", err)
	}
	const routes = "gateway.networking.k8s.io/v1/HTTPRoute"
	if _, err := ask(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: routes}, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: routes}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a type twice: %v", err)
	}
	response, err := ask(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: "example.com/v1/Unknown", InitialResourceVersions: map[string]string{"a/b": "1"}})
	if err != nil || len(response.GetRemovedResources()) != 1 {
		t.Errorf("what isn't published: %v, %v", response, err)
	}
}
