package xds

import (
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

// Fields of envoy.service.discovery.v3.DeltaDiscoveryResponse, of its Resource, and of google.protobuf.Any.
const (
	responseResources protowire.Number = 2
	responseTypeURL   protowire.Number = 4
	responseNonce     protowire.Number = 5
	responseRemoved   protowire.Number = 6
	resourceVersion   protowire.Number = 1
	resourceBody      protowire.Number = 2
	resourceName      protowire.Number = 3
	anyTypeURL        protowire.Number = 1
	anyValue          protowire.Number = 2
)

// response is a DeltaDiscoveryResponse as it is sent: what is this proxy's own, and between that the bodies, which are
// the same bytes for all proxies and are not copied for each.
type response struct{ pieces mem.BufferSlice }

// smallBody is what is copied all the same: less than a piece of its own costs.
const smallBody = 1 << 10

// response returns what a flight is sent as.
func (s *Server) response(g *gateway, f *flight) *response {
	var out response
	var own []byte
	url := s.types[f.typ].url
	for _, r := range f.set {
		body := g.body(f, r)
		inner := sizeOfString(anyTypeURL, url) + protowire.SizeTag(anyValue) + protowire.SizeBytes(len(body))
		size := sizeOfString(resourceVersion, r.Version) + sizeOfString(resourceName, r.Name) + protowire.SizeTag(resourceBody) + protowire.SizeBytes(inner)
		own = appendLength(own, responseResources, size)
		own = appendString(own, resourceVersion, r.Version)
		own = appendString(own, resourceName, r.Name)
		own = appendLength(own, resourceBody, inner)
		own = appendString(own, anyTypeURL, url)
		own = appendLength(own, anyValue, len(body))
		if len(body) <= smallBody {
			own = append(own, body...)
			continue
		}
		out.pieces = append(out.pieces, mem.SliceBuffer(own), mem.SliceBuffer(body))
		own = nil
	}
	own = appendString(own, responseTypeURL, url)
	own = appendString(own, responseNonce, strconv.FormatUint(f.nonce, 10))
	for _, name := range f.removed {
		own = appendString(own, responseRemoved, name)
	}
	out.pieces = append(out.pieces, mem.SliceBuffer(own))
	return &out
}

func sizeOfString(field protowire.Number, text string) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(len(text))
}

func appendString(b []byte, field protowire.Number, text string) []byte {
	return append(appendLength(b, field, len(text)), text...)
}

func appendLength(b []byte, field protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(n)) //nolint:gosec // a length
}

// codec is that of all services, which sends a response as it is.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ok := v.(*response); ok {
		return r.pieces, nil
	}
	return c.CodecV2.Marshal(v)
}

// bodies are those of route tables that several proxies are about to be sent: each is put together once. They are forgotten
// with the next commit, or soon after they have been made.
type bodies struct {
	mu    sync.Mutex
	of    map[*envoy.Resource][]byte
	size  int
	timer *time.Timer
}

const (
	// maxBodies bounds them, in bytes: all of a large Gateway's would be most of its configuration.
	maxBodies = 4 << 20
	// bodiesFor is how long they are kept.
	bodiesFor = 5 * time.Second
)

// body is the body of a resource that is sent.
func (g *gateway) body(f *flight, r *envoy.Resource) []byte {
	if !r.HasParts() {
		return r.Body()
	}
	if !f.several {
		g.server.metrics.assembled.Inc()
		return r.Body()
	}
	b := &g.bodies
	b.mu.Lock()
	defer b.mu.Unlock()
	if body, ok := b.of[r]; ok {
		return body
	}
	body := r.Body()
	g.server.metrics.assembled.Inc()
	if b.size+len(body) > maxBodies {
		return body
	}
	if b.of == nil {
		b.of = map[*envoy.Resource][]byte{}
		b.timer = time.AfterFunc(bodiesFor, b.forget)
	}
	b.of[r], b.size = body, b.size+len(body)
	return body
}

// forget leaves them to those who are sending them.
func (b *bodies) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of != nil {
		b.timer.Stop()
	}
	b.of, b.size, b.timer = nil, 0, nil
}
