package lastgood

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	frameHead   = 9 // bytes, RFC 9113 section 4.1
	messageHead = 5 // bytes of gRPC: whether it is compressed, and its length

	// maxMessage is far above the largest configuration. It bounds what a message that
	// can't be one makes this process take.
	maxMessage = 256 << 20
	// maxHeaderTable bounds the memory for the other side's headers. Envoy takes 4 kB.
	maxHeaderTable = 64 << 10

	discoveryMethod = "/DeltaAggregatedResources"
)

// frames cuts what one side of an HTTP/2 connection says into frames.
type frames struct {
	skip  int    // bytes of the preface that are still to come
	rest  []byte // of a frame that has not come whole
	frame func(head http2.FrameHeader, payload []byte) error
}

func (f *frames) write(b []byte) error {
	n := min(f.skip, len(b))
	f.skip -= n
	f.rest = append(f.rest, b[n:]...)
	at := f.rest
	for len(at) >= frameHead {
		length := int(at[0])<<16 | int(at[1])<<8 | int(at[2])
		if len(at) < frameHead+length {
			break
		}
		head := http2.FrameHeader{
			Type: http2.FrameType(at[3]), Flags: http2.Flags(at[4]),
			Length: uint32(length), StreamID: binary.BigEndian.Uint32(at[5:]) &^ (1 << 31),
		}
		payload := at[frameHead : frameHead+length]
		at = at[frameHead+length:]
		if err := f.frame(head, payload); err != nil {
			return err
		}
	}
	f.rest = append(f.rest[:0], at...)
	return nil
}

var errFrame = errors.New("a frame of HTTP/2 that is too short")

// content returns the payload of a DATA or HEADERS frame without padding and priority.
func content(head http2.FrameHeader, payload []byte) ([]byte, error) {
	padding := 0
	if head.Flags.Has(http2.FlagDataPadded) { // of HEADERS it is the same flag
		if len(payload) == 0 {
			return nil, errFrame
		}
		padding, payload = int(payload[0]), payload[1:]
	}
	if head.Type == http2.FrameHeaders && head.Flags.Has(http2.FlagHeadersPriority) {
		if len(payload) < 5 {
			return nil, errFrame
		}
		payload = payload[5:]
	}
	if padding > len(payload) {
		return nil, errFrame
	}
	return payload[:len(payload)-padding], nil
}

// streams finds the streams of discovery in what Envoy says.
type streams struct {
	decoder *hpack.Decoder
	path    string
	found   func(stream uint32)
}

func newStreams(found func(stream uint32)) *streams {
	s := &streams{found: found}
	s.decoder = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == ":path" {
			s.path = f.Value
		}
	})
	s.decoder.SetAllowedMaxDynamicTableSize(maxHeaderTable)
	return s
}

// headers takes a fragment of a block of headers.
func (s *streams) headers(head http2.FrameHeader, fragment []byte) error {
	if _, err := s.decoder.Write(fragment); err != nil {
		return err
	}
	if !head.Flags.Has(http2.FlagHeadersEndHeaders) { // of CONTINUATION it is the same flag
		return nil
	}
	if err := s.decoder.Close(); err != nil {
		return err
	}
	if strings.HasSuffix(s.path, discoveryMethod) {
		s.found(head.StreamID)
	}
	s.path = ""
	return nil
}

// messages puts the messages of one side of a gRPC stream together.
type messages struct{ rest []byte }

func (m *messages) write(b []byte, take func(message []byte) error) error {
	m.rest = append(m.rest, b...)
	for len(m.rest) >= messageHead {
		length := binary.BigEndian.Uint32(m.rest[1:])
		switch {
		case m.rest[0] != 0:
			return errors.New("a compressed message")
		case length > maxMessage:
			return fmt.Errorf("a message of %d bytes", length)
		case uint32(len(m.rest)-messageHead) < length:
			return nil
		}
		if err := take(m.rest[messageHead : messageHead+length]); err != nil {
			return err
		}
		// A buffer of its own for what follows: one message may have been large.
		m.rest = append([]byte(nil), m.rest[messageHead+length:]...)
	}
	return nil
}
