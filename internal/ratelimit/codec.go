package ratelimit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"unicode/utf8"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	// The codec that ours is made of registers itself.
	_ "google.golang.org/grpc/encoding/proto"
)

// codec reads requests that are counted by what is no text, too. Envoy sends what clients have
// sent, and cuts it to a length, maybe within a character; the codec of gRPC refuses all of such a
// request. Whoever sent it would pass wherever limits let pass what can't be counted.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	if _, ok := v.(*ratelimitv3.RateLimitRequest); err == nil || !ok {
		return err
	}
	readable, repaired := repair(data.Materialize())
	if repaired != nil {
		return errors.Join(err, repaired)
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{mem.SliceBuffer(readable)}, v)
}

// The fields on the way to the value of a descriptor's entry.
const (
	descriptorsField protowire.Number = 2
	entriesField     protowire.Number = 1
	valueField       protowire.Number = 2
)

// repair returns a request with readable text in place of values that are none.
func repair(request []byte) ([]byte, error) {
	return rewrite(request, descriptorsField, func(descriptor []byte) ([]byte, error) {
		return rewrite(descriptor, entriesField, func(entry []byte) ([]byte, error) {
			return rewrite(entry, valueField, func(value []byte) ([]byte, error) { return readable(value), nil })
		})
	})
}

// readable returns a text that stands for a value, and for no other one.
func readable(value []byte) []byte {
	if utf8.Valid(value) {
		return value
	}
	sum := sha256.Sum256(value)
	return hex.AppendEncode([]byte("\ufffd"), sum[:16])
}

// rewrite returns a message in which all values of a field are others.
func rewrite(message []byte, field protowire.Number, with func([]byte) ([]byte, error)) ([]byte, error) {
	out := make([]byte, 0, len(message)+64)
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		whole := message[:n]
		message = message[n:]
		if number != field || kind != protowire.BytesType {
			out = append(out, whole...)
			continue
		}
		_, _, tag := protowire.ConsumeTag(whole)
		value, length := protowire.ConsumeBytes(whole[tag:])
		if length < 0 {
			return nil, protowire.ParseError(length)
		}
		value, err := with(value)
		if err != nil {
			return nil, err
		}
		out = protowire.AppendBytes(protowire.AppendTag(out, field, protowire.BytesType), value)
	}
	return out, nil
}
