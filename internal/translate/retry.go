package translate

import (
	"math"
	"slices"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// leastBackoff stands in for a backoff of zero, which Envoy refuses.
const leastBackoff = time.Millisecond

// retry translates when to retry; nil where nothing is said of it. With zero attempts it is never, whatever policies say.
func (t *translation) retry(at position, spec *gwv1.HTTPRouteRetry) *ir.Retry {
	if spec == nil {
		return nil
	}
	r := &ir.Retry{Attempts: 1}
	if spec.Attempts != nil {
		if *spec.Attempts < 0 {
			f := at.field("retry.attempts")
			t.refuse(f, condition.OutOfRange(f, int64(*spec.Attempts), 0, math.MaxInt32))
			return nil
		}
		r.Attempts = uint32(min(*spec.Attempts, math.MaxInt32))
	}
	for i, code := range spec.Codes {
		if code < 400 || code > 599 {
			f := at.field(item("retry.codes", i))
			t.refuse(f, condition.OutOfRange(f, int64(code), 400, 599))
			continue
		}
		r.StatusCodes = append(r.StatusCodes, uint32(code))
	}
	slices.Sort(r.StatusCodes)
	r.StatusCodes = slices.Compact(r.StatusCodes)
	if r.Backoff = t.duration(at, "retry.backoff", spec.Backoff); r.Backoff != nil {
		*r.Backoff = max(*r.Backoff, leastBackoff)
	}
	if r.Attempts == 0 {
		return &ir.Retry{}
	}
	return r
}
