package traffic

import (
	"strings"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// duration reads a time of GEP-2257 that is at least so long; 0 where it is broken.
func (r *reader) duration(field string, in gwv1.Duration, least time.Duration, instead string) time.Duration {
	text := string(in)
	d, err := time.ParseDuration(text)
	if err != nil || strings.Trim(text, "0123456789hms") != "" || !strings.ContainsAny(text, "hms") || d < least {
		r.Problem(field, "is %q; write %s", text, instead)
		return 0
	}
	return d
}

func (r *reader) timeout(in *gwv1.Duration, out *ir.Traffic) {
	out.Timeout = new(r.duration("", *in, 0, "a time such as 30s or 5m, or 0s for no limit"))
}

func (r *reader) idleTimeout(in *gwv1.Duration, out *ir.Traffic) {
	out.IdleTimeout = new(r.duration("", *in, 0, "a time such as 30s or 1h, or 0s for no limit"))
}
