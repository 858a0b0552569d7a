package translate

import (
	"strings"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

func (t *translation) timeouts(at position, spec *gwv1.HTTPRouteTimeouts) *ir.Timeouts {
	if spec == nil || spec.Request == nil && spec.BackendRequest == nil {
		return nil
	}
	out := &ir.Timeouts{
		Request: t.duration(at, "timeouts.request", spec.Request),
		Backend: t.duration(at, "timeouts.backendRequest", spec.BackendRequest),
	}
	if out.Request != nil && out.Backend != nil && *out.Request > 0 && *out.Backend > *out.Request {
		f := at.field("timeouts.backendRequest")
		t.refuse(f, condition.TimeoutExceedsRequest(f, string(*spec.BackendRequest), string(*spec.Request)))
	}
	return out
}

// duration parses a duration of GEP-2257: a subset of what Go writes, without
// signs, fractions and units below the millisecond.
func (t *translation) duration(at position, name string, d *gwv1.Duration) *time.Duration {
	if d == nil {
		return nil
	}
	text := string(*d)
	out, err := time.ParseDuration(text)
	if err != nil || strings.Trim(text, "0123456789hms") != "" || !strings.ContainsAny(text, "hms") {
		f := at.field(name)
		t.refuse(f, condition.InvalidDuration(f, text))
		return nil
	}
	return &out
}
