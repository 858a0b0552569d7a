package envoy

import (
	bandwidthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/bandwidth_limit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

func requestBandwidth(t *ir.Traffic) (message, error) {
	return bandwidth(t.RequestBandwidth, bandwidthv3.BandwidthLimit_REQUEST)
}

func responseBandwidth(t *ir.Traffic) (message, error) {
	return bandwidth(t.ResponseBandwidth, bandwidthv3.BandwidthLimit_RESPONSE)
}

// bandwidth bounds how many bytes a second pass. It counts for all threads together; a filter for each direction, since
// one has one number.
func bandwidth(limit *uint64, direction bandwidthv3.BandwidthLimit_EnableMode) (message, error) {
	if limit == nil || *limit == 0 {
		return nil, nil //nolint:nilnil // there is nothing to limit
	}
	const kib = 1 << 10
	return &bandwidthv3.BandwidthLimit{
		StatPrefix: "bandwidth", EnableMode: direction, LimitKbps: wrapperspb.UInt64(*limit / kib),
	}, nil
}
