package xds

import (
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
)

// conversation is what a proxy sends, one request after the other, as they are framed in
// a file of messages: length, message.
func conversation(requests ...*discoveryv3.DeltaDiscoveryRequest) (out []byte) {
	for _, r := range requests {
		text, err := proto.Marshal(r)
		if err != nil {
			panic(err)
		}
		out = protowire.AppendBytes(out, text)
	}
	return out
}

// requests reads a conversation up to its first mistake. A type URL of one byte is a type
// by its number, so that a change of few bytes is another conversation.
func requests(text []byte) (out []*discoveryv3.DeltaDiscoveryRequest) {
	types := resourceTypes()
	for len(text) > 0 && len(out) < 200 {
		body, n := protowire.ConsumeBytes(text)
		if n < 0 {
			break
		}
		text = text[n:]
		r := &discoveryv3.DeltaDiscoveryRequest{}
		if proto.Unmarshal(body, r) != nil {
			continue
		}
		if url := r.GetTypeUrl(); len(url) == 1 {
			r.TypeUrl = types[int(url[0])%len(types)].url
		}
		out = append(out, r)
	}
	return out
}

// FuzzRequests protects the control plane, and the other proxies of a Gateway, from what a
// proxy says: its session ends with a reason, or goes on within its bounds, and leaves
// nothing behind.
func FuzzRequests(f *testing.F) {
	type (
		request = discoveryv3.DeltaDiscoveryRequest
		node    = corev3.Node
	)
	f.Add(conversation(&request{TypeUrl: "\x00", Node: &node{Id: "a"}}, &request{TypeUrl: "\x00", ResponseNonce: "1"},
		&request{TypeUrl: "\x01", ResourceNamesSubscribe: []string{"a", "b"}}, &request{TypeUrl: "\x01", ResponseNonce: "2"},
		&request{TypeUrl: "\x02"}, &request{TypeUrl: "\x02", ResponseNonce: "3", ErrorDetail: &rpcstatus.Status{Message: "Error adding/updating listener(s) l: bad\x1b"}},
		&request{TypeUrl: "\x03", ResourceNamesSubscribe: []string{"t", "none", "*", ""}}, &request{TypeUrl: "\x04", ResourceNamesSubscribe: []string{"s"}},
		&request{TypeUrl: "\x01", ResourceNamesUnsubscribe: []string{"a", "never"}}))
	f.Add(conversation(&request{TypeUrl: "\x00", InitialResourceVersions: map[string]string{"a": "1", "gone": "x", "": ""}, ResourceNamesSubscribe: []string{"*"}},
		&request{TypeUrl: "\x03", InitialResourceVersions: map[string]string{"t": "old"}, ResourceNamesSubscribe: []string{"t"}},
		&request{TypeUrl: "\x00", ResponseNonce: "99999999999999999999"}, &request{TypeUrl: "\x00", ResponseNonce: "-1", ErrorDetail: &rpcstatus.Status{}}))
	f.Add(conversation(&request{TypeUrl: "nothing"}, &request{TypeUrl: "\x00", ResourceNamesSubscribe: []string{string(make([]byte, maxName+1))}}))
	f.Add([]byte("\xff\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		server := newServer(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, resourceTypes())
		defer server.Stop()
		h := &harness{t: t, server: server}
		h.apply(small()...)
		g := server.enter(gw, "")
		defer server.leave(g)
		now := time.Now()
		s := newSession(g, server.nextID(), now)
		g.attach(s, now)
		changes := [][]any{{cluster("a", "2"), ends("a", "2")}, {"-cluster/b", "-endpoints/b"}, {table("t", "x:2"), listener("l", "2")}, {"-listener/l", "-routes/t"}, {cluster("b", "3"), ends("b", "3"), secret("s", "2")}}
		last := uint64(0)
		for i, r := range requests(text) {
			now = now.Add(100 * time.Millisecond)
			if i%2 == 1 {
				h.apply(changes[i/2%len(changes)]...)
			}
			if err := s.receive(r, now); err != nil {
				if status.Code(err) != codes.ResourceExhausted {
					t.Fatal(err)
				}
				messagetest.Error(t, err, 300)
				break
			}
			for _, flight := range s.plan(now) {
				if flight.nonce <= last {
					t.Fatalf("response %d comes after %d", flight.nonce, last)
				}
				last = flight.nonce
				checkResponse(t, s, message(t, s, flight))
			}
			checkBounds(t, s)
		}
		checkState(t, server.state(gw))
		s.close()
		if g.charged != 0 || len(g.sessions) != 0 {
			t.Fatalf("%d bytes and %d sessions are left behind", g.charged, len(g.sessions))
		}
	})
}

// checkResponse holds a response against what the proxy may get.
func checkResponse(t *testing.T, s *session, m *discoveryv3.DeltaDiscoveryResponse) {
	t.Helper()
	// Who asks for all of a type is owed an answer, also where there is nothing of it.
	asked, _ := s.gateway.server.typeOf(m.GetTypeUrl())
	if len(m.GetResources()) == 0 && len(m.GetRemovedResources()) == 0 && !s.types[asked].wildcard {
		t.Fatalf("an empty response of %s", m.GetTypeUrl())
	}
	var names []string
	for _, r := range m.GetResources() {
		if r.GetName() == "" || slices.Contains(m.GetRemovedResources(), r.GetName()) {
			t.Fatalf("%s %q is set and removed, or has no name", m.GetTypeUrl(), r.GetName())
		}
		names = append(names, r.GetName())
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(m.GetResources()) {
		t.Fatalf("a response of %s has a name twice: %q", m.GetTypeUrl(), names)
	}
}

func checkBounds(t *testing.T, s *session) {
	t.Helper()
	if s.charged < 0 || s.charged > maxSessionBytes || s.gateway.charged != s.charged {
		t.Fatalf("%d bytes are counted for the session, %d for the Gateway", s.charged, s.gateway.charged)
	}
	if len(s.unanswered) > maxUnanswered+len(s.types) || len(s.inflight) > maxReplaced+maxUnanswered+len(s.types) {
		t.Fatalf("%d responses without an answer, %d removals wait for", len(s.inflight), len(s.unanswered))
	}
	records := 0
	for i := range s.types {
		records += len(s.types[i].records)
	}
	if records > maxUnknownNames+100 {
		t.Fatalf("%d names are remembered", records)
	}
}

// checkState holds what is told of a Gateway's proxies against what replicas pass on.
func checkState(t *testing.T, state State) {
	t.Helper()
	for _, r := range state.Rejected {
		if r.Type >= envoy.NumTypes || r.Name == "" {
			t.Fatalf("%+v", r)
		}
		messagetest.Check(t, r.Message, 4096)
	}
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	var again State
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if diff := cmp.Diff(state, again); diff != "" {
		t.Fatalf("passed on, the state is another:\n%s", diff)
	}
}
