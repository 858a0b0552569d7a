package envoy

import (
	"cmp"
	"strconv"
	"time"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// streamIdle is how long nothing may move on a request, Envoy's default. It
// ends requests that a client or a backend has forgotten.
const streamIdle = 5 * time.Minute

// longest is more than any duration of the Gateway API (GEP-2257), and less than
// what Envoy can count.
const longest = 100 * 365 * 24 * time.Hour

func duration(d time.Duration) *durationpb.Duration { return durationpb.New(min(d, longest)) }

// setTimeouts bounds the whole request, and so its only attempt where there is no other;
// setRetry bounds one of several.
//
// Without a word from the route there is no limit but streamIdle. Envoy's own
// default, 15 s, cuts downloads, streams and long polls, and no one who reads
// only the route would know why.
func setTimeouts(a *routev3.RouteAction, t *ir.Timeouts, r *ir.Retry) {
	a.Timeout = &durationpb.Duration{}
	if t == nil {
		return
	}
	request, attempt := timeout(cmp.Or(t.Request, t.Whole)), timeout(t.Backend)
	whole := request
	if attempt > 0 && !repeats(r) && (request == 0 || attempt < request) {
		whole = attempt
	}
	if whole > 0 {
		a.Timeout = duration(whole)
	}
	// What the route allows, or switches off, must not end as idle before.
	switch {
	case t.Idle != nil:
		a.IdleTimeout = duration(*t.Idle)
	case t.Request == nil && attempt > streamIdle:
		a.IdleTimeout = duration(attempt)
	case t.Request != nil && (request == 0 || request > streamIdle):
		a.IdleTimeout = duration(request)
	}
}

// timeout is 0 where there is none.
func timeout(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return max(*d, 0)
}

// wholeAnswer is the header that bounds an attempt until its answer has ended. The router
// takes it, so that no backend gets it; what a client says by it is removed before.
const wholeAnswer = "x-envoy-upstream-stream-duration-ms"

// answerGrace is by how much wholeAnswer is longer than the limit for the beginning of an
// answer: who misses that one gets 504, and not what Envoy says when both end at once.
const answerGrace = 10 * time.Millisecond

// boundAnswer has an attempt that may be repeated end with its limit also where the answer
// has begun: Envoy's limit for an attempt is for the beginning only.
func boundAnswer(settings *map[string]*anypb.Any, t *ir.Timeouts, r *ir.Retry) error {
	if t == nil || timeout(t.Backend) == 0 || !repeats(r) {
		return nil
	}
	limit := min(*t.Backend, longest)
	if hedges(r, t) { // it goes on beside the next ones, and Envoy ends the request with the first that ends like this
		limit = min(limit*time.Duration(r.Attempts+2), longest)
	}
	ms := (limit + answerGrace).Milliseconds()
	return changeRequests(settings, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{
		Append: &corev3.HeaderValueOption{
			Header:       &corev3.HeaderValue{Key: wholeAnswer, Value: strconv.FormatInt(ms, 10)},
			AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		},
	}})
}
