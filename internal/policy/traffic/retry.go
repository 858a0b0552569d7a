package traffic

import (
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

const maxAttempts = 10

func (r *reader) retry(in *v1alpha1.TrafficRetry, out *ir.Traffic) {
	retry := &ir.Retry{Attempts: 1}
	out.Retry = retry
	if in.Attempts != nil {
		if *in.Attempts < 0 || *in.Attempts > maxAttempts {
			r.Problem(".attempts", "is %d; write 0, for never, to %d", *in.Attempts, maxAttempts)
			return
		}
		retry.Attempts = uint32(*in.Attempts)
	}
	for i, code := range in.Codes {
		if code < 400 || code > 599 {
			r.Problem(fmt.Sprintf(".codes[%d]", i), "is %d; only statuses from 400 to 599 are failures", code)
			return
		}
		retry.StatusCodes = append(retry.StatusCodes, uint32(code))
	}
	slices.Sort(retry.StatusCodes)
	retry.StatusCodes = slices.Compact(retry.StatusCodes)
	if in.Backoff != nil {
		retry.Backoff = new(r.duration(".backoff", *in.Backoff, time.Millisecond, "a time of at least 1ms, such as 100ms"))
	}
	if retry.Attempts == 0 {
		if len(in.Codes) > 0 || in.Backoff != nil {
			r.Problem(".attempts", "is 0, and repeats nothing; leave out what stands beside it")
		}
		*retry = ir.Retry{}
	}
}
