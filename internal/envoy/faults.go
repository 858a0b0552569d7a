package envoy

import (
	faultcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// faultSlot makes faults for a share of the requests, and has what else stands before backends: each place in the chain
// costs each connection manager memory. Faults are last, so that they are seen by what looks at answers.
var faultSlot = trafficSlot{
	name: "gatehouse.faults",
	setting: func(t *ir.Traffic) any {
		return [...]any{t.AdmissionControl, t.RequestBandwidth, t.ResponseBandwidth, t.Faults}
	},
	filters: []trafficFilter{
		{"admission", admissionControl}, {"request bandwidth", requestBandwidth}, {"response bandwidth", responseBandwidth}, {"faults", faults},
	},
}

func faults(t *ir.Traffic) (message, error) {
	f := t.Faults
	if f == nil || *f == (ir.Faults{}) {
		return nil, nil //nolint:nilnil // there are no faults
	}
	out := &faultv3.HTTPFault{DisableDownstreamClusterStats: true}
	if f.Delay > 0 {
		out.Delay = &faultcommonv3.FaultDelay{
			FaultDelaySecifier: &faultcommonv3.FaultDelay_FixedDelay{FixedDelay: duration(f.Delay)},
			Percentage:         &typev3.FractionalPercent{Numerator: f.DelayPercent},
		}
	}
	if f.Status > 0 {
		out.Abort = &faultv3.FaultAbort{
			ErrorType:    &faultv3.FaultAbort_HttpStatus{HttpStatus: f.Status},
			Percentage:   &typev3.FractionalPercent{Numerator: f.AbortPercent},
			ResponseBody: "A fault that a TrafficPolicy makes.\n",
		}
	}
	return out, nil
}
