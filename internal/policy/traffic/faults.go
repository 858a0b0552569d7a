package traffic

import (
	"time"

	"github.com/gatehouse-dev/gatehouse/api/v1alpha1"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// maxDelay is how long a request may be delayed: each takes memory of the proxy for that time.
const maxDelay = time.Minute

func (r *reader) faults(in *v1alpha1.Faults, out *ir.Traffic) {
	f := &ir.Faults{}
	out.Faults = f
	switch {
	case in.Disabled && (in.Delay != nil || in.Abort != nil):
		r.Problem(".disabled", "is true, and makes no faults; leave out either it or what stands beside it")
	case !in.Disabled && in.Delay == nil && in.Abort == nil:
		r.Problem("", "makes no faults; write delay or abort, or disabled: true")
	}
	if in.Delay != nil {
		f.DelayPercent = r.number(".delay.percent", in.Delay.Percent, 100, 0, 100)
		if f.Delay = r.duration(".delay.duration", in.Delay.Duration, time.Millisecond, "a time such as 500ms, of at most 1m"); f.Delay > maxDelay {
			r.Problem(".delay.duration", "is %q; a request is delayed by 1m at most", in.Delay.Duration)
		}
	}
	if in.Abort != nil {
		f.AbortPercent = r.number(".abort.percent", in.Abort.Percent, 100, 0, 100)
		f.Status = r.number(".abort.status", in.Abort.Status, 503, 400, 599)
	}
}
