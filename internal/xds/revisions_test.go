package xds

import (
	"context"
	"testing"

	"google.golang.org/grpc/test/bufconn"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// revision returns the harness for proxies of a revision.
func (h *harness) revision(name string) *harness {
	h.t.Helper()
	out := *h
	out.lis = bufconn.Listen(1 << 16)
	g := h.server.enter(gw, name)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- h.server.serve(ctx, out.lis, &discovery{server: h.server, gateway: g}) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			h.t.Errorf("serve: %v", err)
		}
		h.server.leave(g)
	})
	return &out
}

// Proxies of another revision that refuse a change keep their last good version, and don't keep the change from
// those that serve.
func TestRefusedByRevision(t *testing.T) {
	h := start(t)
	h.apply(small()...)
	serving := h.connectAll()
	next := h.revision("r2")
	waiting := next.connectAll()

	h.apply(listener("l", "2"))
	waiting.expect("listener +l=2 ! Error adding/updating listener(s) l: no\n", "listener +l=1")
	serving.expect("listener +l=2")
	s := h.state("l refused by one revision", func(s State) bool {
		return s.Refusing["r2"] == "listener/l: no" && s.Connected == 2
	})
	if len(s.Refusing) != 1 {
		t.Errorf("%v refuse it", s.Refusing)
	}
	if info, _ := h.server.Gateway(gw); info.State.Connected != 2 || len(h.server.Sessions()) != 2 || len(h.server.Gateways()) != 1 {
		t.Errorf("%+v", info.State)
	}

	late := h.connect()
	late.subscribe(envoy.Listeners)
	late.expect("listener +l=2")
	third := h.revision("r3").connect()
	third.subscribe(envoy.Listeners)
	third.expect("listener +l=2 ! Error adding/updating listener(s) l: no\n")

	h.apply(listener("l", "3"))
	for _, p := range []*client{serving, waiting, late, third} {
		p.expect("listener +l=3")
	}
	h.state("healed", func(s State) bool { return len(s.Refusing) == 0 && len(s.Rejected) == 0 && s.Connected == 4 })
}
