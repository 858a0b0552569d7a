package envoy

import (
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/ratelimit/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/ratelimit/descriptor"
)

// Limits by which the proxies of a Gateway count together are asked for at a service. It knows no
// limits: each request's description says all of them, so that proxies and the service agree by
// themselves.

// RateLimitCluster is the one that the service is in. Each proxy starts with it.
const RateLimitCluster = "gatehouse-limits"

// A sharedFilter asks the service, and lets requests pass or not if that does not answer. A level
// needs one of them at most for each stage: all limits of that are judged by one call, so that none is charged for
// what another one refuses. Where any of them lets nothing pass that can't be counted, nothing passes.
type sharedFilter struct {
	name  string
	early bool
	deny  bool
}

var sharedFilters = [...]sharedFilter{
	{"gatehouse.limits.early.shared", true, false}, {"gatehouse.limits.early.shared.closed", true, true},
	{"gatehouse.limits.shared", false, false}, {"gatehouse.limits.shared.closed", false, true},
}

// askTimeout is how long requests wait for the service.
const askTimeout = 250 * time.Millisecond

// sharedLimitFilters are the filters that ask the service, early or late, for levels to enable.
func sharedLimitFilters(early bool) (out []*hcmv3.HttpFilter) {
	for _, f := range sharedFilters {
		if f.early != early {
			continue
		}
		out = append(out, optional(f.name, &ratelimitv3.RateLimit{
			Domain: descriptor.Domain, FailureModeDeny: f.deny, Timeout: durationpb.New(askTimeout),
			RateLimitService: &ratelimitconfigv3.RateLimitServiceConfig{
				TransportApiVersion: corev3.ApiVersion_V3,
				GrpcService: &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
					EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: RateLimitCluster},
				}},
			},
			// The service says how much is left, since Envoy can't of all windows.
			EnableXRatelimitHeaders:        ratelimitv3.RateLimit_OFF,
			DisableXEnvoyRatelimitedHeader: true,
			RateLimitedAsResourceExhausted: true,
			StatusOnError:                  &typev3.HttpStatus{Code: typev3.StatusCode_ServiceUnavailable},
		}))
	}
	return out
}

// setSharedLimits enables the filters that ask the service, with what a level asks for.
func setSharedLimits(set func(name string, here bool, config *anypb.Any, around bool), l, outer *ir.RateLimits, domain string) error {
	for _, f := range sharedFilters {
		config, err := f.config(l, domain)
		if err != nil {
			return err
		}
		set(f.name, config != nil, config, f.isAsked(outer))
	}
	config, err := usage(usages(l))
	if err != nil {
		return err
	}
	set(usageSlot, config != nil, config, len(usages(outer)) > 0)
	return nil
}

// isAsked reports whether the filter is the one for the limits of a level.
func (f sharedFilter) isAsked(l *ir.RateLimits) bool {
	if l == nil {
		return false
	}
	asked, deny := false, false
	for i := range l.Counted {
		if g := l.Counted[i].Global; g != nil && l.Counted[i].Key.Early == f.early {
			asked, deny = true, deny || g.Deny
		}
	}
	return asked && deny == f.deny
}

// config is how requests are described to the service: for each limit once for each of its rates,
// and twice where the answer says what it has cost. What is left is looked at before then, and
// what it was is taken when the answer has ended. They stand in the filter's configuration, since
// Envoy counts each request once by those of routes, whatever it has cost.
func (f sharedFilter) config(l *ir.RateLimits, domain string) (*anypb.Any, error) {
	if !f.isAsked(l) {
		return nil, nil
	}
	m := &ratelimitv3.RateLimitPerRoute{}
	for i := range l.Counted {
		in := &l.Counted[i]
		if in.Global == nil || in.Key.Early != f.early {
			continue
		}
		counters, err := counterActions(in.Counters, domain)
		if err != nil {
			return nil, err
		}
		for at, rate := range in.Global.Rates {
			name := rateName(in.Key.String(), at)
			limit, err := limitOf(name, conditionOf(in))
			if err != nil {
				return nil, err
			}
			charge := limit
			if len(in.Global.Statuses) > 0 {
				if charge, err = limitOfAnswer(name, conditionOf(in), in.Global.Statuses); err != nil {
					return nil, err
				}
			}
			m.RateLimits = append(m.RateLimits, sharedCounts(limit, charge, in.Global, rate, counters)...)
		}
	}
	return pack(m)
}

// sharedCounts describes a request by a limit, and by what it is charged for, which may be another one.
func sharedCounts(limit, charge *routev3.RateLimit_Action, g *ir.GlobalLimit, rate ir.Rate, counters []*routev3.RateLimit_Action) []*routev3.RateLimit {
	said := []*routev3.RateLimit_Action{described(descriptor.KeyRate, descriptor.Rate{Limit: rate.Limit, Window: rate.Window}.String())}
	if g.Shadow {
		said = append(said, described(descriptor.KeyShadow, descriptor.On))
	}
	check := &routev3.RateLimit{Actions: slices.Concat([]*routev3.RateLimit_Action{limit}, said, counters)}
	cost := &routev3.RateLimit_HitsAddend{Number: wrapperspb.UInt64(1)}
	switch {
	case len(g.Tokens) > 0:
		cost = &routev3.RateLimit_HitsAddend{Format: "%DYNAMIC_METADATA(" + usageSlot + ":" + usageKey(g.Tokens) + ")%"}
	case len(g.Statuses) == 0:
		return []*routev3.RateLimit{check}
	}
	check.HitsAddend = &routev3.RateLimit_HitsAddend{Number: wrapperspb.UInt64(0)}
	said = append(said, described(descriptor.KeyCharge, descriptor.On))
	return []*routev3.RateLimit{check, {
		Actions:           slices.Concat([]*routev3.RateLimit_Action{charge}, said, counters),
		ApplyOnStreamDone: true,
		HitsAddend:        cost,
	}}
}
