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

// setRetry says when an attempt is repeated, and how long one may take.
func setRetry(a *routev3.RouteAction, r *ir.Retry, t *ir.Timeouts) error {
	var attempt time.Duration
	if t != nil && t.Backend != nil {
		attempt = *t.Backend
	}
	if attempt > 0 {
		// Envoy times a single attempt too, even if it is never repeated.
		a.RetryPolicy = &routev3.RetryPolicy{PerTryTimeout: duration(attempt)}
	}
	if r == nil || r.Attempts == 0 {
		return nil
	}
	if a.RetryPolicy == nil {
		a.RetryPolicy = &routev3.RetryPolicy{}
	}
	p := a.RetryPolicy
	p.RetryOn = unsent
	p.NumRetries = wrapperspb.UInt32(r.Attempts)
	for _, code := range r.StatusCodes {
		if code < 400 || code > 599 {
			return fmt.Errorf("retry: status code %d is not between 400 and 599", code)
		}
	}
	if len(r.StatusCodes) > 0 {
		p.RetryOn += ",retriable-status-codes"
		p.RetriableStatusCodes = r.StatusCodes
	}
	if attempt > 0 {
		// An attempt that took too long is to be repeated. Envoy has no name
		// for it but reset, which takes in connections that break while the
		// backend is at work: whoever limits the attempt has to bear with
		// repetitions of such requests anyway.
		p.RetryOn += ",reset"
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
