package envoy

import (
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
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

// setTimeouts bounds the whole request; setRetry bounds one attempt.
//
// Without a word from the route there is no limit but streamIdle. Envoy's own
// default, 15 s, cuts downloads, streams and long polls, and no one who reads
// only the route would know why.
func setTimeouts(a *routev3.RouteAction, t *ir.Timeouts) {
	a.Timeout = &durationpb.Duration{}
	if t == nil || t.Request == nil {
		if t != nil && t.Backend != nil && *t.Backend > streamIdle {
			a.IdleTimeout = duration(*t.Backend)
		}
		return
	}
	request := max(*t.Request, 0)
	if request > 0 {
		a.Timeout = duration(request)
	}
	// What the route allows, or switches off, must not end as idle before.
	if request == 0 || request > streamIdle {
		a.IdleTimeout = duration(request)
	}
}
