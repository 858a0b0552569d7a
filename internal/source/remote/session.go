package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/remote/wire"
)

const (
	// A server that has gone without a word is noticed after these together.
	pingAfter   = 10 * time.Second
	pingTimeout = 10 * time.Second

	// maxObjects bounds how many objects a server may send.
	maxObjects = 500_000
	// maxUnfinished bounds what is sent before a state is complete, in bytes of JSON and of names.
	maxUnfinished = 1 << 30
	// maxWrong bounds how much of a response may be wrong.
	maxWrong = 1000
	// maxVersion bounds what is shown of a state's version.
	maxVersion = 128
	// silence is how long a server may say nothing while it owes a state. What it owes is said then, and it is asked anew.
	silence = time.Minute
)

type stream = grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]

// session is what one connection has told so far, and is not in force yet.
type session struct {
	*Source
	stream  stream
	awaited map[string]bool       // types that have not been answered
	changes map[object.Key]*entry // nil for an object that is gone
	size    int
	whole   bool // a state has been complete
}

// subscribe connects and takes in what the server tells until the connection ends. whole
// reports whether a state was complete.
func (s *Source) subscribe(outer context.Context, apply func(source.Batch)) (whole bool, err error) {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	options, err := s.opts.dialOptions()
	if err != nil {
		return false, err
	}
	call := []grpc.CallOption{grpc.MaxCallRecvMsgSize(wire.MaxResponse), grpc.MaxCallSendMsgSize(wire.MaxRequest)}
	if !s.plain {
		call = append(call, grpc.UseCompressor(gzip.Name))
	}
	conn, err := grpc.NewClient("passthrough:///"+s.opts.Address, append(options,
		grpc.WithDefaultCallOptions(call...),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingTimeout, PermitWithoutStream: true}),
		grpc.WithUserAgent("gatehouse"),
	)...)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	opened, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return false, err
	}
	c := &session{Source: s, stream: opened, awaited: map[string]bool{}, changes: map[object.Key]*entry{}}
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	if err := c.begin(); err != nil {
		return false, c.cause(err)
	}
	var telling sync.WaitGroup
	defer telling.Wait()
	defer cancel()
	tell := sync.OnceFunc(func() { telling.Go(func() { s.report(ctx, conn) }) })
	for {
		response, err := opened.Recv()
		if err == nil {
			watchdog.Reset(silence)
			err = c.take(response, apply)
		}
		if c.whole {
			watchdog.Stop()
			tell()
		}
		if err != nil && outer.Err() == nil && ctx.Err() != nil {
			err = fmt.Errorf("it has been silent for %s, and owes a state; not answered are %d types", silence, len(c.awaited))
		}
		if err != nil {
			return c.whole, c.cause(err)
		}
	}
}

// cause returns the server's reason for a stream that has ended, where a message could not be sent.
func (c *session) cause(err error) error {
	if errors.Is(err, io.EOF) {
		if _, told := c.stream.Recv(); told != nil {
			err = told
		}
	}
	c.plain = c.plain || status.Code(err) == codes.Unimplemented
	return err
}

// begin subscribes to all kinds, and says what is known of them.
func (c *session) begin() error {
	versions := map[string]map[string]string{}
	for url := range c.types {
		versions[url] = map[string]string{}
		c.awaited[url] = true
	}
	for key, e := range c.entries {
		if url, ok := c.urls[key.Kind]; ok {
			versions[url][wire.Name(key.Name)] = e.version
		}
	}
	host, _ := os.Hostname()
	node := &corev3.Node{Id: host, UserAgentName: "gatehouse"}
	for _, url := range slices.Sorted(maps.Keys(versions)) {
		err := c.stream.Send(&discoveryv3.DeltaDiscoveryRequest{
			Node: node, TypeUrl: url, ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: versions[url],
		})
		if err != nil {
			return err
		}
		node = nil
	}
	return nil
}

// take takes in a response, acknowledges it, and puts a state in force that is complete.
func (c *session) take(r *discoveryv3.DeltaDiscoveryResponse, apply func(source.Batch)) error {
	problems, err := c.note(r)
	if err != nil {
		return err
	}
	ack := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.GetTypeUrl(), ResponseNonce: r.GetNonce()}
	if len(problems) > 0 {
		ack.ErrorDetail = &rpcstatus.Status{Code: int32(codes.InvalidArgument), Message: summary(problems)}
	}
	if err := c.stream.Send(ack); err != nil {
		return err
	}
	if r.GetSystemVersionInfo() != "" && len(c.awaited) == 0 {
		return c.complete(r.GetSystemVersionInfo(), apply)
	}
	return nil
}

// note notes what a response changes, and returns what is wrong with it.
func (c *session) note(r *discoveryv3.DeltaDiscoveryResponse) (problems []source.Problem, err error) {
	d := c.types[r.GetTypeUrl()]
	if d == nil {
		return []source.Problem{{Reason: source.Unknown, Message: fmt.Sprintf("type %q was not asked for", r.GetTypeUrl())}}, nil
	}
	delete(c.awaited, r.GetTypeUrl())
	wrongName := func(name string) {
		problems = append(problems, source.Problem{Reason: source.Invalid, Message: fmt.Sprintf("resource name %q of type %s is not that of an object", name, r.GetTypeUrl())})
	}
	for _, resource := range r.GetResources() {
		name, ok := wire.ParseName(d, resource.GetName())
		if !ok {
			wrongName(resource.GetName())
			continue
		}
		key := object.Key{Kind: d.Kind, Name: name}
		e := c.read(key, resource)
		c.changes[key] = e
		problems = append(problems, e.problems...)
		if c.size += len(resource.GetName()) + len(resource.GetResource().GetValue()); c.size > maxUnfinished || len(problems) > maxWrong {
			return nil, fmt.Errorf("%w: %d bytes before a state is complete, %d mistakes in a response", errTooMuch, c.size, len(problems))
		}
	}
	for _, text := range r.GetRemovedResources() {
		if c.size += len(text); c.size > maxUnfinished || len(problems) > maxWrong {
			return nil, fmt.Errorf("%w: %d bytes before a state is complete, %d mistakes in a response", errTooMuch, c.size, len(problems))
		}
		if name, ok := wire.ParseName(d, text); ok {
			c.changes[object.Key{Kind: d.Kind, Name: name}] = nil
		} else {
			wrongName(text)
		}
	}
	if n := len(c.changes) + len(c.entries); n > 2*maxObjects {
		return nil, fmt.Errorf("%w: %d objects", errTooMuch, n)
	}
	return problems, nil
}

// complete puts a state in force.
func (c *session) complete(version string, apply func(source.Batch)) error {
	version = strings.ToValidUTF8(version[:min(len(version), maxVersion)], "")
	n := len(c.entries)
	for key, e := range c.changes {
		switch was := c.entries[key]; {
		case e != nil && was == nil:
			n++
		case e == nil && was != nil:
			n--
		}
	}
	if n > maxObjects {
		return fmt.Errorf("%w: %d objects, at most %d", errTooMuch, n, maxObjects)
	}
	b := source.Batch{Problems: map[string][]source.Problem{}}
	keys := slices.SortedFunc(maps.Keys(c.changes), object.Key.Compare)
	for _, key := range keys {
		c.replace(key, c.changes[key], &b)
	}
	if !c.whole {
		b.Problems[c.Name()] = nil
		c.log.Info("the state of the config server is in force", "version", version, "objects", n, "changed", len(keys))
	}
	c.whole = true
	c.setState(func(st *source.Remote) {
		*st = source.Remote{Address: st.Address, Current: true, AsOf: time.Now(), Version: version, Objects: n}
	})
	apply(b)
	c.kept.save(c.Source, keys)
	c.changes, c.size = map[object.Key]*entry{}, 0
	return nil
}

// replace puts what was told of an object in the place of what was known.
func (s *Source) replace(key object.Key, e *entry, b *source.Batch) {
	was := s.entries[key]
	if e == nil {
		if was == nil {
			return
		}
		delete(s.entries, key)
		if was.object != nil {
			b.Deleted = append(b.Deleted, key)
		}
		if len(was.problems) > 0 {
			b.Problems[s.problem(key)] = nil
		}
		return
	}
	e.succeed(was)
	s.entries[key] = e
	if e.object != nil && (was == nil || was.object != e.object) {
		b.Set = append(b.Set, e.object)
	}
	if len(e.problems) > 0 || was != nil && len(was.problems) > 0 {
		b.Problems[s.problem(key)] = e.problems
	}
}

// problem is the key under which what is wrong with an object stands.
func (s *Source) problem(key object.Key) string { return "\x00" + s.Name() + "\x00" + key.String() }

// reason is why a connection has ended, in a line.
func reason(err error) string {
	if err == nil {
		return "it ended the connection"
	}
	text := err.Error()
	if s, ok := status.FromError(err); ok {
		text = s.Message()
	}
	if text == "EOF" {
		return "it ended the connection"
	}
	if _, why, ok := strings.Cut(text, "Error while dialing: "); ok {
		text = strings.TrimSuffix(why, `"`)
	}
	const most = 500
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}
