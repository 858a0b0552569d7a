package fleet

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// relay stands between a proxy and the controller, and writes down what both say.
type relay struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	to *grpc.ClientConn

	mu    sync.Mutex
	turns []turn
}

// turn is a message of the proxy (asked) or of the controller.
type turn struct {
	asked  *discoveryv3.DeltaDiscoveryRequest
	answer *discoveryv3.DeltaDiscoveryResponse
}

// newRelay serves a proxy at a Unix socket in plain text, and connects on its behalf.
func newRelay(t *testing.T, socket string, dial func(context.Context) (net.Conn, error)) *relay {
	t.Helper()
	to, err := grpc.NewClient("passthrough:controller", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse)))
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{to: to}
	lis, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxResponse))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, r)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(lis) }()
	t.Cleanup(func() { server.Stop(); _ = to.Close(); <-done })
	return r
}

// DeltaAggregatedResources carries a conversation.
func (r *relay) DeltaAggregatedResources(proxy discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	ctx, cancel := context.WithCancel(proxy.Context())
	defer cancel()
	controller, err := discoveryv3.NewAggregatedDiscoveryServiceClient(r.to).DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	go func() {
		defer cancel()
		for {
			m, err := proxy.Recv()
			if err != nil {
				return
			}
			r.add(turn{asked: m})
			if controller.Send(m) != nil {
				return
			}
		}
	}()
	for {
		m, err := controller.Recv()
		if err != nil {
			return err
		}
		r.add(turn{answer: m})
		if err := proxy.Send(m); err != nil {
			return err
		}
	}
}

func (r *relay) add(t turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turns = append(r.turns, t)
}

// said returns what a proxy has said since a turn, each thing once, and whether it has answered all
// responses. How many resources a response has, and in which order Envoy asks for different types,
// is of no account.
func (r *relay) said(since int) (lines []string, answered bool, turns int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	responses := map[string]*discoveryv3.DeltaDiscoveryResponse{} // without an answer
	said := map[string]bool{}
	for i, t := range r.turns {
		if m := t.answer; m != nil {
			responses[m.GetTypeUrl()+m.GetNonce()] = m
			continue
		}
		m := t.asked
		if m.GetNode() != nil {
			clear(responses) // a new stream
		}
		to := responses[m.GetTypeUrl()+m.GetResponseNonce()]
		delete(responses, m.GetTypeUrl()+m.GetResponseNonce())
		if i < since {
			continue
		}
		kind := m.GetTypeUrl()[strings.LastIndexByte(m.GetTypeUrl(), '.')+1:]
		say := func(verb string, names ...string) {
			for _, name := range names {
				said[kind+" "+verb+" "+name] = true
			}
		}
		verb := "takes"
		if m.GetErrorDetail() != nil {
			verb = "refuses"
		}
		for _, res := range to.GetResources() {
			say(verb, "+"+res.GetName())
		}
		for _, name := range to.GetRemovedResources() {
			say(verb, "-"+name)
		}
		say("asks", m.GetResourceNamesSubscribe()...)
		say("drops", m.GetResourceNamesUnsubscribe()...)
		say("has", slices.Collect(maps.Keys(m.GetInitialResourceVersions()))...)
	}
	return slices.Sorted(maps.Keys(said)), len(responses) == 0, len(r.turns)
}
