package lastgood

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// maxResponse is about how much resources have a response together for, in bytes.
const maxResponse = 3 << 20

// Serve answers a connection of Envoy's from the last good configuration, until ctx ends or Envoy
// hangs up. There must be one: see Wait.
func (k *Keeper) Serve(ctx context.Context, conn net.Conn) {
	k.mu.Lock()
	good := k.good
	again := !k.standsIn.IsZero()
	if !again {
		k.standsIn = time.Now()
	}
	k.mu.Unlock()
	if !again {
		k.o.Log.Warn("no control plane answers; serving the last good configuration",
			"kept_at", good.at.Format(time.RFC3339), "resources", good.len())
	}
	tap := k.Tap(conn)
	tap.standIn = true
	one := &single{Conn: tap, closed: make(chan struct{})}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage), grpc.WaitForHandlers(true),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, &standIn{keeper: k, good: good})
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		select {
		case <-ctx.Done():
		case <-one.closed:
		}
		server.Stop()
	})
	_ = server.Serve(&once{conn: one}) // it ends by Stop alone
}

// standIn is the discovery service of one connection.
type standIn struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	keeper *Keeper
	good   *state
}

// DeltaAggregatedResources answers each subscription. Nothing changes, so there is no order to
// keep: Envoy asks for what it needs when it has what needs it.
func (s *standIn) DeltaAggregatedResources(stream grpc.BidiStreamingServer[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]) error {
	types := map[string]subscription{} // by URL
	nonce := 0
	for {
		req, err := stream.Recv()
		if err != nil {
			return err
		}
		url := req.GetTypeUrl()
		if e := req.GetErrorDetail(); e != nil {
			s.keeper.o.Log.Warn("envoy refuses what it has had before", "type", url, "message", first(e.GetMessage(), maxRefusal))
		}
		if types[url] == nil {
			types[url] = subscription{}
			maps.Copy(types[url], req.GetInitialResourceVersions())
			if len(req.GetResourceNamesSubscribe()) == 0 {
				req.ResourceNamesSubscribe = []string{"*"} // by xDS, a first request without names is for all
			}
		}
		for _, answer := range types[url].answers(req, s.good.types[url]) {
			nonce++
			answer.TypeUrl, answer.Nonce = url, strconv.Itoa(nonce)
			if err := stream.Send(answer); err != nil {
				return err
			}
		}
	}
}

// first is the beginning of a text of Envoy's, which may have any length.
func first(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

const maxRefusal = 1000

// minPing is how often Envoy may ask whether the connection is alive; it does so every 30 s.
const minPing = 5 * time.Second

// subscription is what Envoy has of a type: versions by name.
type subscription map[string]string

// answers returns what a request is answered with, and takes it for what Envoy has.
func (s subscription) answers(req *discoveryv3.DeltaDiscoveryRequest, good resources) []*discoveryv3.DeltaDiscoveryResponse {
	for _, name := range req.GetResourceNamesUnsubscribe() {
		delete(s, name)
	}
	names := slices.Clone(req.GetResourceNamesSubscribe())
	all := slices.Contains(names, "*")
	if all {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "*" })
		names = slices.AppendSeq(names, maps.Keys(good))
		slices.Sort(names)
		names = slices.Compact(names)
	}
	var out []*discoveryv3.DeltaDiscoveryResponse
	size := 0
	add := func(n int) *discoveryv3.DeltaDiscoveryResponse {
		if size += n; len(out) == 0 || size > maxResponse {
			out, size = append(out, &discoveryv3.DeltaDiscoveryResponse{}), n
		}
		return out[len(out)-1]
	}
	if all && len(names) == 0 {
		add(1) // Envoy waits for an answer
	}
	for _, name := range names {
		r := good[name]
		if r == nil {
			r = empty(req.GetTypeUrl(), name)
		}
		switch {
		case r == nil:
			m := add(len(name))
			m.RemovedResources = append(m.RemovedResources, name)
		case s[name] != r.GetVersion():
			m := add(proto.Size(r))
			m.Resources = append(m.Resources, r)
			s[name] = r.GetVersion()
		}
	}
	return out
}

// empty is what the control plane, too, answers for what does not exist, where Envoy can't be told that
// there is none.
func empty(url, name string) *discoveryv3.Resource {
	var r *envoy.Resource
	switch url {
	case envoy.Endpoints.URL():
		r = envoy.EmptyEndpoints(name)
	case envoy.Extensions.URL():
		r = envoy.EmptyExtension(name)
	case envoy.Routes.URL():
		r = envoy.EmptyRoutes(name)
	default:
		return nil
	}
	return &discoveryv3.Resource{Name: r.Name, Version: r.Version, Resource: &anypb.Any{TypeUrl: url, Value: r.Body()}}
}

// once is a listener with one connection.
type once struct {
	conn *single
	done bool
}

func (o *once) Accept() (net.Conn, error) {
	if o.done {
		<-o.conn.closed
		return nil, net.ErrClosed
	}
	o.done = true
	return o.conn, nil
}
func (o *once) Close() error   { return o.conn.Close() }
func (o *once) Addr() net.Addr { return o.conn.LocalAddr() }

// single is a connection that tells its end.
type single struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (s *single) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}
