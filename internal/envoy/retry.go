package envoy

import (
	"fmt"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previoushostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

const (
	// unsent are the failures after which the backend has not seen the request,
	// so that a repetition can do no harm. The Gateway API wants them retried
	// wherever a rule has a retry stanza.
	unsent = "connect-failure,refused-stream,reset-before-request"
	// maxBackoffFactor bounds the exponential backoff: Envoy's default.
	maxBackoffFactor = 10
	// otherHost is how often Envoy looks for an endpoint that it has not tried
	// yet before it takes the last one it found.
	otherHost = 5
)

var previousHosts = constant(&previoushostsv3.PreviousHostsPredicate{})

// repeats reports whether attempts may be repeated.
func repeats(r *ir.Retry) bool { return r != nil && r.Attempts > 0 }

// setRetry says when an attempt is repeated, and how soon its answer has to begin.
//
// An attempt that took too long is not repeated: Envoy's condition for it, reset, takes in
// connections that break while the backend is at work, which may have done what was asked.
func setRetry(a *routev3.RouteAction, r *ir.Retry, t *ir.Timeouts) error {
	if !repeats(r) {
		return nil
	}
	p := &routev3.RetryPolicy{RetryOn: unsent, NumRetries: wrapperspb.UInt32(r.Attempts)}
	a.RetryPolicy = p
	if t != nil && timeout(t.Backend) > 0 {
		p.PerTryTimeout = duration(*t.Backend)
	}
	for _, code := range r.StatusCodes {
		if code < 400 || code > 599 {
			return fmt.Errorf("retry: status code %d is not between 400 and 599", code)
		}
	}
	if len(r.StatusCodes) > 0 {
		p.RetryOn += ",retriable-status-codes"
		p.RetriableStatusCodes = r.StatusCodes
	}
	if r.Backoff != nil && *r.Backoff > 0 {
		base := min(max(*r.Backoff, time.Millisecond), longest/maxBackoffFactor) // Envoy counts milliseconds
		p.RetryBackOff = &routev3.RetryPolicy_RetryBackOff{
			BaseInterval: duration(base),
			MaxInterval:  duration(base * maxBackoffFactor),
		}
	}
	p.RetryHostPredicate = []*routev3.RetryPolicy_RetryHostPredicate{{
		Name:       "envoy.retry_host_predicates.previous_hosts",
		ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: previousHosts},
	}}
	p.HostSelectionRetryMaxAttempts = otherHost
	return nil
}
