package envoy

import (
	"fmt"
	"net/http"
	"slices"
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
	// otherHost is how often Envoy looks for an endpoint that it has not tried yet before it takes
	// the last one it found. One that has died has the fewest requests under way, so that it is what is found
	// three times in four where there are two.
	otherHost = 30
	// defaultAttempts is how often a request is repeated of which neither route nor policy says anything.
	defaultAttempts = 2
)

var previousHosts = constant(&previoushostsv3.PreviousHostsPredicate{})

// tryOthers has another endpoint tried than those that have failed.
func tryOthers(p *routev3.RetryPolicy) *routev3.RetryPolicy {
	p.RetryHostPredicate = []*routev3.RetryPolicy_RetryHostPredicate{{
		Name:       "others", // Envoy goes by the type, and each host has it
		ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: previousHosts},
	}}
	p.HostSelectionRetryMaxAttempts = otherHost
	return p
}

// untaken is what is done with a request that no endpoint of a backend has taken, where neither route nor policy says
// anything of retries: it is tried at another endpoint. An endpoint that has died, or ends, is known as such only after a
// while, and its requests would fail meanwhile, most of all where the one with the fewest requests under way is chosen.
//
// It is said of the backend, since in each host of a route table an edit of one would send it for all of them. Envoy goes by
// the backend's word where there are two, so that routes with a word of their own have a backend of their own (ir.OwnRetries).
func untaken(b *ir.Backend) *routev3.RetryPolicy {
	if b.Settings.OwnRetries || b.Use != ir.UseHTTP && b.Use != ir.UseGRPC {
		return nil
	}
	return untakenPolicy
}

var untakenPolicy = tryOthers(&routev3.RetryPolicy{RetryOn: unsent, NumRetries: wrapperspb.UInt32(defaultAttempts)})

// repeats reports whether attempts may be repeated by a rule's or a policy's own word.
func repeats(r *ir.Retry) bool { return r != nil && r.Attempts > 0 }

// hedges reports whether an attempt that takes too long is repeated.
func hedges(r *ir.Retry, t *ir.Timeouts) bool {
	return t != nil && timeout(t.Backend) > 0 && repeats(r) && slices.Contains(r.StatusCodes, http.StatusGatewayTimeout)
}

// setRetry says when an attempt is repeated, and how soon its answer has to begin.
//
// An attempt that took too long is repeated where 504 is among the codes, which is the answer to it. Envoy's condition for
// it, reset, takes in connections that break while the backend is at work; so the attempt is hedged: it goes on beside
// the next one, and the first to answer counts.
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
	if hedges(r, t) {
		a.HedgePolicy = &routev3.HedgePolicy{HedgeOnPerTryTimeout: true}
	}
	if r.Backoff != nil && *r.Backoff > 0 {
		base := min(max(*r.Backoff, time.Millisecond), longest/maxBackoffFactor) // Envoy counts milliseconds
		p.RetryBackOff = &routev3.RetryPolicy_RetryBackOff{
			BaseInterval: duration(base),
			MaxInterval:  duration(base * maxBackoffFactor),
		}
	}
	tryOthers(p)
	return nil
}
