package envoy

import (
	bodysizelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/body_size_limit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// bodySizeSlot limits the bodies of requests. They pass as they come: the backend may see the beginning
// of one that is too large, if its length was not told. To hold them back would take as much memory as
// all clients together may send. Envoy has the filter only for chains such as this one.
var bodySizeSlot = trafficSlot{
	name:    "gatehouse.body-size",
	setting: func(t *ir.Traffic) any { return t.MaxBodySize },
	filters: []trafficFilter{{"limit", bodySizeLimit}},
}

func bodySizeLimit(t *ir.Traffic) (message, error) {
	if t.MaxBodySize == nil || *t.MaxBodySize == 0 {
		return nil, nil //nolint:nilnil // there is nothing to limit
	}
	return &bodysizelimitv3.BodySizeLimit{MaxRequestBytes: wrapperspb.UInt64(*t.MaxBodySize)}, nil
}
