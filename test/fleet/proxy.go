package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// maxResponse is the longest response that a proxy takes; Envoy takes any.
const maxResponse = 1 << 30

// Dialer opens a connection to the controller, as an agent does for its Envoy.
type Dialer func(context.Context) (net.Conn, error)

// Fleet is simulated proxies of one Gateway.
type Fleet struct {
	gateway string // namespace/name
	catalog *catalog
	all     sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context //nolint:containedctx // of the whole fleet, which begins and ends with it

	mu    sync.Mutex
	takes map[int][]time.Time // by edit: when each proxy has acknowledged it first
	sent  map[string]bool     // what proxies have been sent that they had not, or had taken from them
	fails error
}

// NewFleet returns a fleet without proxies. Stop ends it.
func NewFleet(gateway string) *Fleet {
	f := &Fleet{gateway: Namespace + "/" + gateway, catalog: newCatalog(), takes: map[int][]time.Time{}, sent: map[string]bool{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// Stop ends all proxies.
func (f *Fleet) Stop() {
	f.stop()
	f.all.Wait()
}

// Err is what a proxy could not do; nil where nothing.
func (f *Fleet) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fails
}

func (f *Fleet) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails = errors.Join(f.fails, err)
}

// Takes are the times at which proxies have acknowledged an edit.
func (f *Fleet) Takes(edit int) []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]time.Time(nil), f.takes[edit]...)
}

// Changed are the resources, as type/name, of which proxies have been sent another version or a removal since the last call.
func (f *Fleet) Changed() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	sent := f.sent
	f.sent = map[string]bool{}
	return sent
}

func (f *Fleet) noteChange(t envoy.Type, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent[t.String()+"/"+name] = true
}

// Proxy is a simulated proxy. It serves nobody.
type Proxy struct {
	fleet *Fleet
	dial  Dialer
	stop  context.CancelFunc

	frozen atomic.Pointer[chan struct{}] // closed when it goes on

	mu       sync.Mutex // of what others may look at
	types    [envoy.NumTypes]having
	streams  int // all that it has had
	ready    bool
	newest   int // edit that it has acknowledged
	received int64
}

// having is what a proxy has of a type.
type having struct {
	asked   bool       // once at least, on this stream
	all     int        // how many resources make it ask for all of the type
	has     []*content // by slot
	askedBy []int16    // by slot: how many resources make it ask for this one
	waits   int        // names without an answer
}

// Add starts a proxy.
func (f *Fleet) Add(dial Dialer) *Proxy {
	p := &Proxy{fleet: f, dial: dial}
	ctx, cancel := context.WithCancel(f.ctx)
	p.stop = cancel
	f.all.Go(func() { p.run(ctx) })
	return p
}

// Stop ends the proxy.
func (p *Proxy) Stop() { p.stop() }

// Freeze stops the proxy as SIGSTOP does, until Thaw: its connection stays, and nobody reads.
func (p *Proxy) Freeze() { p.frozen.Store(new(make(chan struct{}))) }

// Thaw lets it go on.
func (p *Proxy) Thaw() {
	if f := p.frozen.Swap(nil); f != nil {
		close(*f)
	}
}

// Ready reports whether it has taken in a whole configuration.
func (p *Proxy) Ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

// Has is how many resources of a type it has.
func (p *Proxy) Has(t envoy.Type) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.types[t].has {
		if c != nil {
			n++
		}
	}
	return n
}

// Streams is how many connections it has had.
func (p *Proxy) Streams() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.streams
}

// Received is how many bytes of resources it has been sent.
func (p *Proxy) Received() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.received
}

// Newest is the newest edit that it has.
func (p *Proxy) Newest() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newest
}

// Versions are those of all that it has of a type, by name.
func (p *Proxy) Versions(t envoy.Type) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.versions(t)
}

func (p *Proxy) versions(t envoy.Type) map[string]string {
	out := map[string]string{}
	for slot, c := range p.types[t].has {
		if c != nil {
			out[p.fleet.catalog.name(t, slot)] = c.version
		}
	}
	return out
}

// run connects until the context ends, as an Envoy behind its agent does.
func (p *Proxy) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := p.converse(ctx)
		if bad := (*misfit)(nil); errors.As(err, &bad) {
			p.fleet.fail(err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(100*time.Millisecond + rand.N(400*time.Millisecond)):
		}
	}
}

// misfit is something that no Envoy could take.
type misfit struct{ error }

// thawing is a connection that nothing is read from while its proxy is frozen.
type thawing struct {
	net.Conn
	proxy *Proxy
	ctx   context.Context //nolint:containedctx // a net.Conn is told none
}

// Read implements net.Conn.
func (c *thawing) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if f := c.proxy.frozen.Load(); f != nil {
		select {
		case <-*f:
		case <-c.ctx.Done():
		}
	}
	return n, err
}

type stream = discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient

// converse is one stream.
func (p *Proxy) converse(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := grpc.NewClient("passthrough:controller", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(dialing context.Context, _ string) (net.Conn, error) {
			conn, err := p.dial(dialing)
			if err != nil {
				return nil, err
			}
			return &thawing{conn, p, ctx}, nil
		}),
		grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10),
		grpc.WithInitialWindowSize(256<<20), grpc.WithInitialConnWindowSize(256<<20), // Envoy's default
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse)))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	if err := p.begin(s); err != nil {
		return err
	}
	for {
		m, err := s.Recv()
		if err != nil {
			return err
		}
		if err := p.take(s, m); err != nil {
			return err
		}
	}
}

// begin asks for clusters, and names what the proxy has of before.
func (p *Proxy) begin(s stream) error {
	p.mu.Lock()
	p.streams++
	var asks []*discoveryv3.DeltaDiscoveryRequest
	for t := range p.types {
		t, y := envoy.Type(t), &p.types[t]
		asks = append(asks, nil)
		if !y.asked && t != envoy.Clusters {
			continue
		}
		y.asked = true
		m := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: t.URL()}
		if has := p.versions(t); len(has) > 0 {
			m.InitialResourceVersions = has
		}
		if !wildcard(t) {
			for slot, n := range y.askedBy {
				if n > 0 {
					m.ResourceNamesSubscribe = append(m.ResourceNamesSubscribe, p.fleet.catalog.name(t, slot))
				}
			}
		}
		asks[t] = m
	}
	p.mu.Unlock()
	node := &corev3.Node{Id: p.fleet.gateway, Cluster: p.fleet.gateway, UserAgentName: "envoy"}
	for _, t := range []envoy.Type{envoy.Clusters, envoy.Endpoints, envoy.Listeners, envoy.Extensions, envoy.Routes, envoy.Scopes, envoy.Secrets} {
		m := asks[t]
		if m == nil {
			continue
		}
		m.Node, node = node, nil // in the first one only
		if err := s.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// wildcard is of the types that Envoy asks for as a whole.
func wildcard(t envoy.Type) bool {
	return t == envoy.Clusters || t == envoy.Listeners || t == envoy.Scopes
}

// take takes in a response and acknowledges it. What follows from it is asked for first.
func (p *Proxy) take(s stream, m *discoveryv3.DeltaDiscoveryResponse) error {
	t, ok := typeOf(m.GetTypeUrl())
	if !ok {
		return &misfit{fmt.Errorf("a response of type %q", m.GetTypeUrl())}
	}
	asks, edits, err := p.use(t, m)
	if err != nil {
		return &misfit{err}
	}
	for _, ask := range asks {
		if err := s.Send(ask); err != nil {
			return err
		}
	}
	if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: m.GetTypeUrl(), ResponseNonce: m.GetNonce()}); err != nil {
		return err
	}
	if len(edits) > 0 {
		p.noteTakes(edits)
	}
	return p.goOn(s)
}

// use changes what the proxy has by a response, and returns what it asks for because of that.
func (p *Proxy) use(t envoy.Type, m *discoveryv3.DeltaDiscoveryResponse) (asks []*discoveryv3.DeltaDiscoveryRequest, edits []int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	y := &p.types[t]
	touched := map[reference]int16{} // how many resources more make the proxy ask for it
	replace := func(slot int, by *content) {
		for len(y.has) <= slot {
			y.has = append(y.has, nil)
		}
		old := y.has[slot]
		y.has[slot] = by
		if old != by {
			p.fleet.noteChange(t, p.fleet.catalog.name(t, slot))
		}
		if old == nil && slot < len(y.askedBy) && y.askedBy[slot] > 0 {
			y.waits--
		}
		for _, is := range []struct {
			content *content
			more    int16
		}{{old, -1}, {by, 1}} {
			if is.content != nil {
				for _, ref := range is.content.refers {
					touched[ref] += is.more
				}
			}
		}
	}
	for _, r := range m.GetResources() {
		c, err := p.fleet.catalog.of(t, r)
		if err != nil {
			return nil, nil, err
		}
		p.received += int64(len(r.GetResource().GetValue()))
		replace(c.slot, c)
		for _, edit := range c.edits {
			if edit > p.newest {
				edits = append(edits, edit)
			}
		}
	}
	for _, name := range m.GetRemovedResources() {
		if slot, ok := p.fleet.catalog.find(t, name); ok && slot < len(y.has) && y.has[slot] != nil {
			replace(slot, nil)
		} else if ok && slot < len(y.askedBy) && y.askedBy[slot] > 0 {
			y.waits-- // it doesn't exist
		}
	}
	return p.follow(touched), edits, nil
}

// follow asks for what is used now, and drops what is used no longer.
func (p *Proxy) follow(touched map[reference]int16) []*discoveryv3.DeltaDiscoveryRequest {
	var byType [envoy.NumTypes]*discoveryv3.DeltaDiscoveryRequest
	request := func(t envoy.Type) *discoveryv3.DeltaDiscoveryRequest {
		if byType[t] == nil {
			byType[t] = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: t.URL()}
		}
		return byType[t]
	}
	for ref, more := range touched {
		y := &p.types[ref.typ]
		if ref.slot < 0 {
			y.all += int(more)
			if y.all > 0 && !y.asked {
				request(ref.typ)
			}
			continue
		}
		for len(y.askedBy) <= ref.slot {
			y.askedBy = append(y.askedBy, 0)
		}
		for len(y.has) <= ref.slot {
			y.has = append(y.has, nil)
		}
		before := y.askedBy[ref.slot]
		y.askedBy[ref.slot] += more
		now := y.askedBy[ref.slot]
		name := p.fleet.catalog.name(ref.typ, ref.slot)
		switch {
		case before == 0 && now > 0:
			m := request(ref.typ)
			m.ResourceNamesSubscribe = append(m.ResourceNamesSubscribe, name)
			if y.has[ref.slot] == nil {
				y.waits++
			}
		case before > 0 && now == 0:
			m := request(ref.typ)
			m.ResourceNamesUnsubscribe = append(m.ResourceNamesUnsubscribe, name)
			if y.has[ref.slot] == nil {
				y.waits--
			}
			y.has[ref.slot] = nil
		}
	}
	var asks []*discoveryv3.DeltaDiscoveryRequest
	for t, m := range byType {
		if m != nil {
			p.types[t].asked = true
			asks = append(asks, m)
		}
	}
	return asks
}

// goOn asks for listeners once there are clusters with their endpoints, and notes when the proxy
// has everything.
func (p *Proxy) goOn(s stream) error {
	p.mu.Lock()
	listeners := &p.types[envoy.Listeners]
	ask := !listeners.asked && p.types[envoy.Endpoints].waits == 0 && p.types[envoy.Secrets].waits == 0
	if ask {
		listeners.asked = true
	}
	if !p.ready && !ask && len(listeners.has) > 0 {
		p.ready = true
		for t := range p.types {
			p.ready = p.ready && p.types[t].waits == 0
		}
		p.ready = p.ready && (p.types[envoy.Scopes].all == 0 || len(p.types[envoy.Scopes].has) > 0)
	}
	p.mu.Unlock()
	if !ask {
		return nil
	}
	return s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: envoy.Listeners.URL()})
}

// noteTakes notes edits that the proxy has just acknowledged.
func (p *Proxy) noteTakes(edits []int) {
	now := time.Now()
	p.mu.Lock()
	var fresh []int
	for _, e := range edits {
		if e > p.newest {
			p.newest = e
			fresh = append(fresh, e)
		}
	}
	p.mu.Unlock()
	p.fleet.mu.Lock()
	defer p.fleet.mu.Unlock()
	for _, e := range fresh {
		p.fleet.takes[e] = append(p.fleet.takes[e], now)
	}
}

func typeOf(url string) (envoy.Type, bool) {
	for t := range envoy.NumTypes {
		if t.URL() == url {
			return t, true
		}
	}
	return 0, false
}
