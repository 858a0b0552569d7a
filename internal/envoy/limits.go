package envoy

import (
	"cmp"
	"math"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// defaultLimits are for clients that nobody knows: those of Envoy's guide for edge
// proxies, unless something else is said. They are written down even where they
// are Envoy's own defaults, which its releases may change.
var defaultLimits = ir.Limits{
	// Far beyond what applications ask for. A client over one of the two gets 431,
	// or loses its stream.
	HeadersKiB: 60,
	Headers:    100,
	// Browsers want 100 at once. Each may hold a request at a backend.
	Streams: 100,
	// Beyond it, whoever sends waits for whoever reads. It bounds what slow readers
	// cost in memory, for backends too.
	BufferKiB: bufferLimit >> 10,
	// Headers come at once from every honest client. Bodies may take their time,
	// bounded by streamIdleTimeout.
	HeadersTimeout: 30 * time.Second,
	// Longer than load balancers in front keep theirs, which must be the first to
	// close, or requests meet a closed connection.
	IdleTimeout: time.Hour,
}

// Limits that nobody has to choose.
const (
	// handshakeTimeout bounds a handshake of TLS or QUIC: a certificate that does
	// not come, or a client that says nothing, must not hold a connection for ever.
	handshakeTimeout = 10 * time.Second
	// firstBytesTimeout bounds what comes before: the PROXY header, and the start
	// of the handshake, by which the chain is chosen; without TLS, the start of a
	// request. Who misses it is cut off.
	firstBytesTimeout = 10 * time.Second
	// streamIdleTimeout bounds how long nothing may move in a request or its answer:
	// a body that stops, a reader that has gone. WebSockets and streams that are
	// silent for longer need pings.
	streamIdleTimeout = 5 * time.Minute
	// pingInterval and pingTimeout find clients of HTTP/2 that are gone without a
	// word: streams of gRPC have no idle timeout. Rare enough not to keep phones
	// awake.
	pingInterval = 5 * time.Minute
	pingTimeout  = 30 * time.Second
	// quicIdleTimeout is how long a connection over UDP, where nothing tells that a
	// client has left, is kept without a packet of it.
	quicIdleTimeout = 5 * time.Minute

	// What a client may send unasked, in HTTP/2 and HTTP/3, in one request and in
	// all of its connection. The first is the least that HTTP/2 has.
	streamWindowBytes = 64 << 10
	connWindowBytes   = 1 << 20
)

// bufferLimit is how many bytes a connection may leave unread, softly: always for
// backends, by default for clients.
const bufferLimit = 32 << 10

// limits completes what was chosen.
func limits(l ir.Limits) ir.Limits {
	return ir.Limits{
		HeadersKiB:     cmp.Or(l.HeadersKiB, defaultLimits.HeadersKiB),
		Headers:        cmp.Or(l.Headers, defaultLimits.Headers),
		Streams:        cmp.Or(l.Streams, defaultLimits.Streams),
		BufferKiB:      min(cmp.Or(l.BufferKiB, defaultLimits.BufferKiB), math.MaxUint32>>10),
		HeadersTimeout: cmp.Or(l.HeadersTimeout, defaultLimits.HeadersTimeout),
		IdleTimeout:    cmp.Or(l.IdleTimeout, defaultLimits.IdleTimeout),
		Duration:       l.Duration,
	}
}
