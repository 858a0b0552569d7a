package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// replayableBody is how much of a request's body Envoy keeps so that it can be
// sent again, to a mirror or as a retry that was asked for. A longer request is sent once only.
// The limit of a connection, which holds otherwise and for the retries of a host, is low: nobody
// has asked for memory for these.
const replayableBody = 1 << 20

func mirrors(all []ir.Mirror) []*routev3.RouteAction_RequestMirrorPolicy {
	if len(all) == 0 {
		return nil
	}
	out := make([]*routev3.RouteAction_RequestMirrorPolicy, 0, len(all))
	for _, m := range all {
		if m.Numerator == 0 || m.Backend.IsZero() {
			continue
		}
		out = append(out, &routev3.RouteAction_RequestMirrorPolicy{
			Cluster:         ClusterName(m.Backend),
			RuntimeFraction: fraction(m.Numerator, m.Denominator),
			// The copy has the Host of the original.
			DisableShadowHostSuffixAppend: true,
			RequestHeadersMutations:       hopsOfMirror,
		})
	}
	return out
}

// fraction returns a fraction in one of Envoy's three denominators, to a
// millionth where none fits; nil is all.
func fraction(numerator, denominator uint32) *corev3.RuntimeFractionalPercent {
	if numerator >= denominator {
		return nil
	}
	f := &typev3.FractionalPercent{Numerator: numerator}
	switch {
	case denominator == 100:
	case 100%denominator == 0:
		f.Numerator = numerator * (100 / denominator)
	case 10_000%denominator == 0:
		f.Numerator, f.Denominator = numerator*(10_000/denominator), typev3.FractionalPercent_TEN_THOUSAND
	default:
		f.Numerator, f.Denominator = millionths(uint64(numerator), uint64(denominator)), typev3.FractionalPercent_MILLION
	}
	return &corev3.RuntimeFractionalPercent{DefaultValue: f}
}
