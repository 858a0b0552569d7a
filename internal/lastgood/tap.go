package lastgood

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/net/http2"
	"google.golang.org/protobuf/proto"
)

// Tap is a connection of Envoy's whose discovery is followed.
type Tap struct {
	net.Conn
	keeper   *Keeper
	standIn  bool        // the other side is this package
	answered atomic.Bool // by the other side, with a response of discovery

	mu                  sync.Mutex
	lost                bool // it can't be followed any further
	requests, responses frames
	streams             *streams
	stream              uint32 // of discovery; 0 before there is one
	asks, answers       messages
	talk                *talk
}

// Tap returns a connection by which Envoy is to be read and written.
func (k *Keeper) Tap(envoy net.Conn) *Tap {
	t := &Tap{Conn: envoy, keeper: k}
	t.streams = newStreams(t.begin)
	t.requests = frames{skip: len(http2.ClientPreface), frame: t.request}
	t.responses = frames{frame: t.response}
	return t
}

// Answered reports whether Envoy was sent a configuration over this connection.
func (t *Tap) Answered() bool { return t.answered.Load() }

// Read implements net.Conn: it is what Envoy says.
func (t *Tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.follow(&t.requests, b[:n])
	return n, err
}

// Write implements net.Conn: it is what Envoy is told. That is read first, since the answer
// to it may come before Write returns.
func (t *Tap) Write(b []byte) (int, error) {
	t.follow(&t.responses, b)
	return t.Conn.Write(b)
}

// CloseWrite tells Envoy that nothing follows.
func (t *Tap) CloseWrite() error {
	half, ok := t.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

func (t *Tap) follow(f *frames, b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost || len(b) == 0 {
		return
	}
	if err := f.write(b); err != nil {
		t.lost = true
		t.requests, t.responses, t.asks, t.answers = frames{}, frames{}, messages{}, messages{}
		t.keeper.lose(err)
	}
}

func (t *Tap) begin(stream uint32) {
	t.stream, t.asks, t.answers = stream, messages{}, messages{}
	t.talk = t.keeper.begin()
	if !t.standIn {
		t.keeper.back()
	}
}

func (t *Tap) request(head http2.FrameHeader, payload []byte) error {
	switch head.Type {
	case http2.FrameHeaders:
		fragment, err := content(head, payload)
		if err != nil {
			return err
		}
		return t.streams.headers(head, fragment)
	case http2.FrameContinuation:
		return t.streams.headers(head, payload)
	case http2.FrameData:
		return t.data(&t.asks, head, payload, func(message []byte) error {
			var m discoveryv3.DeltaDiscoveryRequest
			if err := proto.Unmarshal(message, &m); err != nil {
				return err
			}
			t.talk.request(&m)
			return nil
		})
	default:
		return nil
	}
}

func (t *Tap) response(head http2.FrameHeader, payload []byte) error {
	if head.Type != http2.FrameData {
		return nil
	}
	return t.data(&t.answers, head, payload, func(message []byte) error {
		var m discoveryv3.DeltaDiscoveryResponse
		if err := proto.Unmarshal(message, &m); err != nil {
			return err
		}
		t.answered.Store(true)
		t.talk.response(&m)
		return nil
	})
}

// data takes what is said over the stream of discovery. Figures have streams of their own.
func (t *Tap) data(m *messages, head http2.FrameHeader, payload []byte, take func([]byte) error) error {
	if t.stream == 0 || head.StreamID != t.stream {
		return nil
	}
	said, err := content(head, payload)
	if err != nil {
		return err
	}
	return m.write(said, take)
}
