package xds

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// The conversations below are written in lines such as
//
//	cluster +a=1 +b=1 -c
//
// one for each response: its type, then each resource with its body, then what
// is removed. A route table's body is its hosts: table=[x:1 y:500]; "empty" is
// what answers a subscription to nothing. The client acknowledges each response
// unless the line ends in
//
//	?        no answer (until answer is called)
//	! text   a refusal with that text

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	code := m.Run()
	if err := goleak.Find(goleak.IgnoreTopFunction("time.goFunc")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

var gw = named("default/edge")

// named returns the name that a text says.
func named(text string) object.Name {
	name, ok := object.ParseName(text)
	if !ok {
		panic(text + " is not NAMESPACE/NAME")
	}
	return name
}

const patience = 20 * time.Second

type harness struct {
	t      *testing.T
	server *Server
	states chan State
	lis    *bufconn.Listener
}

func start(t *testing.T, options ...func(*Options)) *harness {
	t.Helper()
	return startWith(t, resourceTypes(), options...)
}

// startWith starts a server of these types.
func startWith(t *testing.T, types []resourceType, options ...func(*Options)) *harness {
	t.Helper()
	h := &harness{t: t, states: make(chan State, 1000), lis: bufconn.Listen(1 << 16)}
	o := Options{
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
		OnState: func(_ object.Name, s State) { h.states <- s },
	}
	for _, f := range options {
		f(&o)
	}
	h.server = newServer(o, types)
	h.serve(h.lis, gw)
	return h
}

func (h *harness) serve(lis net.Listener, gateway object.Name) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- h.server.Serve(ctx, lis, gateway) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			h.t.Errorf("Serve: %v", err)
		}
		h.server.Stop()
	})
}

// apply sets resources; a name after "-" is removed: "-cluster/a".
func (h *harness) apply(changes ...any) {
	h.t.Helper()
	h.server.Apply([]Update{h.update(changes...)})
}

func (h *harness) update(changes ...any) Update {
	h.t.Helper()
	u := Update{Gateway: gw}
	for _, c := range changes {
		switch c := c.(type) {
		case *envoy.Resource:
			u.Set = append(u.Set, c)
		case string:
			u.Remove = append(u.Remove, ref(h.t, strings.TrimPrefix(c, "-")))
		default:
			h.t.Fatalf("%T", c)
		}
	}
	return u
}

// state waits for a state.
func (h *harness) state(what string, ok func(State) bool) State {
	h.t.Helper()
	deadline := time.After(patience)
	var last State
	for {
		select {
		case last = <-h.states:
			if ok(last) {
				return last
			}
		case <-deadline:
			h.t.Fatalf("no state with %s; the last is %+v", what, last)
		}
	}
}

func ref(t testing.TB, s string) Ref {
	t.Helper()
	kind, name, _ := strings.Cut(s, "/")
	for i, y := range testTypes() {
		if y.name == kind {
			return Ref{envoy.Type(i), name}
		}
	}
	t.Fatalf("no type %q", kind)
	return Ref{}
}

func cluster(name, body string) *envoy.Resource  { return resource(envoy.Clusters, name, body) }
func ends(name, body string) *envoy.Resource     { return resource(envoy.Endpoints, name, body) }
func secret(name, body string) *envoy.Resource   { return resource(envoy.Secrets, name, body) }
func listener(name, body string) *envoy.Resource { return resource(envoy.Listeners, name, body) }

func resource(t envoy.Type, name, body string) *envoy.Resource {
	return envoy.NewResource(t, name, []byte(body))
}

// table returns a route table with hosts "x:1".
func table(name string, hosts ...string) *envoy.Resource {
	parts := make([]*envoy.Part, len(hosts))
	for i, h := range hosts {
		host, _, _ := strings.Cut(h, ":")
		body := []byte(h + " ")
		var guard envoy.Guard // who may pass: what is behind an @
		if _, by, ok := strings.Cut(h, "@"); ok {
			guard = guardBy(by)
		}
		parts[i] = &envoy.Part{Name: host, Hash: envoy.Sum(body), Body: body, Guard: guard}
	}
	return envoy.NewComposite(envoy.Routes, name, []byte("table "), parts)
}

// client is a proxy that answers as the test says.
type client struct {
	t       *testing.T
	stream  discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	got     chan *discoveryv3.DeltaDiscoveryResponse
	err     chan error
	first   bool
	fences  int
	pending []*discoveryv3.DeltaDiscoveryResponse // without an answer
	conn    *grpc.ClientConn
	cancel  context.CancelFunc
}

func (h *harness) dial(lis *bufconn.Listener) *grpc.ClientConn {
	h.t.Helper()
	conn, err := grpc.NewClient("passthrough:xds",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// connect opens a stream that reads all the time.
func (h *harness) connect() *client {
	h.t.Helper()
	p := h.connectSilent()
	go func() {
		for {
			m, err := p.stream.Recv()
			if err != nil {
				p.err <- err
				return
			}
			p.got <- m
		}
	}()
	return p
}

// connectSilent opens a stream that reads nothing.
func (h *harness) connectSilent() *client {
	h.t.Helper()
	p := &client{
		t: h.t, first: true, conn: h.dial(h.lis),
		got: make(chan *discoveryv3.DeltaDiscoveryResponse, 100_000), err: make(chan error, 1),
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	h.t.Cleanup(cancel)
	var err error
	p.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(p.conn).DeltaAggregatedResources(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func (p *client) send(req *discoveryv3.DeltaDiscoveryRequest) {
	p.t.Helper()
	if p.first {
		req.Node = &corev3.Node{Id: "somebody else's gateway"}
		p.first = false
	}
	if err := p.stream.Send(req); err != nil {
		p.t.Fatal(err)
	}
}

// subscribe asks for names of a type; for all of it without names.
func (p *client) subscribe(t envoy.Type, names ...string) {
	p.t.Helper()
	p.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: testTypes()[t].url, ResourceNamesSubscribe: names})
}

func (p *client) unsubscribe(t envoy.Type, names ...string) {
	p.t.Helper()
	p.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: testTypes()[t].url, ResourceNamesUnsubscribe: names})
}

// resume asks as Envoy does after a reconnect: with what it has.
func (p *client) resume(t envoy.Type, has ...*envoy.Resource) {
	p.t.Helper()
	req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: testTypes()[t].url, InitialResourceVersions: map[string]string{}}
	for _, r := range has {
		req.InitialResourceVersions[r.Name] = r.Version
		if !testTypes()[t].hasWildcard {
			req.ResourceNamesSubscribe = append(req.ResourceNamesSubscribe, r.Name)
		}
	}
	p.send(req)
}

func (p *client) next() *discoveryv3.DeltaDiscoveryResponse {
	p.t.Helper()
	select {
	case m := <-p.got:
		return m
	case err := <-p.err:
		p.t.Fatalf("stream: %v", err)
	case <-time.After(patience):
		p.t.Fatal("nothing comes")
	}
	return nil
}

// expect reads responses and compares and answers them.
func (p *client) expect(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		want, text, nack := strings.Cut(line, " ! ")
		want, silent := strings.CutSuffix(want, " ?")
		m := p.next()
		if got := describe(m); got != want {
			p.t.Fatalf("got  %s\nwant %s", got, want)
		}
		switch {
		case silent:
			p.pending = append(p.pending, m)
		case nack:
			p.nack(m, text)
		default:
			p.ack(m)
		}
	}
}

func (p *client) ack(m *discoveryv3.DeltaDiscoveryResponse) {
	p.t.Helper()
	p.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: m.GetTypeUrl(), ResponseNonce: m.GetNonce()})
}

func (p *client) nack(m *discoveryv3.DeltaDiscoveryResponse, text string) {
	p.t.Helper()
	p.send(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: m.GetTypeUrl(), ResponseNonce: m.GetNonce(),
		ErrorDetail: &rpcstatus.Status{Code: 13, Message: text},
	})
}

// change changes the server, and tells each session.
func (h *harness) change(server func(*Server), tell func(*session)) {
	g := h.server.gateways[gw]
	g.mu.Lock()
	defer g.mu.Unlock()
	server(h.server)
	for s := range g.sessions {
		tell(s)
	}
}

// answer acknowledges the oldest response without an answer.
func (p *client) answer() {
	p.t.Helper()
	p.ack(p.pending[0])
	p.pending = p.pending[1:]
}

// quiet checks that nothing is on its way: what the server answers next is what
// is asked now.
func (p *client) quiet() {
	p.t.Helper()
	p.fences++
	name := fmt.Sprintf("fence-%d", p.fences)
	p.subscribe(envoy.Secrets, name)
	p.expect("secret -" + name)
	p.unsubscribe(envoy.Secrets, name)
}

// message is what a proxy reads of a response.
func message(t interface{ Fatal(...any) }, s *session, f *flight) *discoveryv3.DeltaDiscoveryResponse {
	m := &discoveryv3.DeltaDiscoveryResponse{}
	if err := proto.Unmarshal(s.gateway.server.response(s.gateway, f).pieces.Materialize(), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func describe(m *discoveryv3.DeltaDiscoveryResponse) string {
	types := testTypes()
	t := slices.IndexFunc(types, func(y resourceType) bool { return y.url == m.GetTypeUrl() })
	words := []string{types[t].name}
	for _, r := range m.GetResources() {
		if r.GetVersion() == "" || r.GetResource().GetTypeUrl() != m.GetTypeUrl() {
			return "malformed " + r.String()
		}
		words = append(words, "+"+r.GetName()+"="+body(envoy.Type(t), r.GetName(), r.GetResource().GetValue()))
	}
	removed := slices.Sorted(slices.Values(m.GetRemovedResources()))
	for _, name := range removed {
		words = append(words, "-"+name)
	}
	return strings.Join(words, " ")
}

func body(t envoy.Type, name string, b []byte) string {
	if empty := testTypes()[t].empty; empty != nil && bytes.Equal(empty(name).Body(), b) {
		return "empty"
	}
	if closed := testTypes()[t].closed; closed != nil && bytes.Equal(closed(name).Body(), b) {
		return "nobody's"
	}
	rest, ok := strings.CutPrefix(string(b), "table ")
	if !ok {
		return string(b)
	}
	for _, host := range []string{"x", "y", "z", "a", "b", "c"} {
		rest = strings.ReplaceAll(rest, string(unavailable(host).Body), host+":500 ")
	}
	return "[" + strings.TrimSpace(rest) + "]"
}

// guardBy is the guard of something that has one for all requests.
func guardBy(by string) envoy.Guard { return envoy.Guard{{By: uint64(by[0]), Alone: true}} }
