package envoy

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// message is a generated Envoy message: it knows its own validation rules.
type message interface {
	proto.Message
	ValidateAll() error
}

// wire is deterministic, so that equal values have equal bytes, and with them
// equal versions, in every replica and after every restart.
var wire = proto.MarshalOptions{Deterministic: true}

// marshal checks and marshals a message. A message that breaks Envoy's proto
// rules would cost a whole response, without a word about the culprit.
func marshal(m message) ([]byte, error) {
	if err := m.ValidateAll(); err != nil {
		return nil, err
	}
	b, err := wire.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("marshal %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return b, nil
}

// resource marshals a message into a resource.
func resource(t Type, name string, m message) (*Resource, error) {
	b, err := marshal(m)
	if err != nil {
		return nil, err
	}
	return NewResource(t, name, b), nil
}

// field marshals a message, already checked, as a length-delimited field of the
// message around it.
func field(number protowire.Number, m proto.Message) ([]byte, error) {
	size := wire.Size(m)
	b := make([]byte, 0, protowire.SizeTag(number)+protowire.SizeBytes(size))
	b = protowire.AppendTag(b, number, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	opts := wire
	opts.UseCachedSize = true
	return opts.MarshalAppend(b, m)
}

// pack wraps an extension's configuration. ValidateAll of the message around it
// doesn't look into it, so it is checked here.
func pack(m message) (*anypb.Any, error) {
	b, err := marshal(m)
	if err != nil {
		return nil, err
	}
	return &anypb.Any{
		TypeUrl: "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName()),
		Value:   b,
	}, nil
}

// constant packs a configuration that has no variable part.
func constant(m message) *anypb.Any {
	a, err := pack(m)
	if err != nil {
		panic(fmt.Sprintf("envoy: constant %s: %v", m.ProtoReflect().Descriptor().FullName(), err))
	}
	return a
}
