package envoy

import (
	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// bufferSlot holds requests back until their bodies are whole.
var bufferSlot = trafficSlot{
	name:    "gatehouse.buffer",
	setting: func(t *ir.Traffic) any { return t.Buffering },
	filters: []trafficFilter{{name: "buffer", make: func(t *ir.Traffic) (message, error) {
		if t.Buffering == nil || *t.Buffering == 0 {
			return nil, nil //nolint:nilnil // nothing is held back
		}
		return &bufferv3.Buffer{MaxRequestBytes: wrapperspb.UInt32(*t.Buffering)}, nil
	}}},
}
