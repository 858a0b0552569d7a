package envoy

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	localratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/ratelimit/descriptor"
)

// Counts of requests are kept by filters whose configuration comes by itself (ECDS), and not in
// route tables: Envoy forgets all counts of what changes, and any edit of a route changes its
// table. There are several such filters, each with its share of the limits, so that an edit of a
// limit costs the counts of few others. All are in every connection manager from the start, and
// levels enable those that they need and name the limits that are in force.

// RateLimitSlots is how many filters there are: those that count the requests that may pass, and
// behind them, by number, two that count before that is known. Each takes some 3.5 kB of memory for each filter
// chain of a proxy, with limits and without. Another number moves limits to other filters. At most
// eleven are possible: a filter knows by Envoy's stages which names of limits are for it.
const (
	RateLimitSlots = lateSlots + earlySlots
	lateSlots      = 4
	earlySlots     = 2
)

// The counts of a filter, one for each value of a limit's counters and each of its rates, are
// shared out evenly, within bounds for each rate. The count that has been used least lately goes
// for a new one.
const (
	allCounts   = 20_000
	maxCounts   = 10_000
	leastCounts = 500
)

// countsOfEach is how many counts each rate of a filter's limits has at most.
func countsOfEach(limits []ir.RateLimit) int {
	rates := 0
	for _, l := range counted(limits) {
		if len(l.Counters) > 0 {
			rates += len(l.Rates)
		}
	}
	return min(max(allCounts/max(rates, 1), leastCounts), maxCounts)
}

// The lengths in bytes to which counters look at what clients send: counts are kept by it.
const (
	longestValue  = 128
	longestPath   = 256
	longestMethod = 32
)

// nothing is what counters see in place of what is not there. No header can be this.
const nothing = "\n"

// RateLimitSlot is the filter that has a limit. It follows from the limit's name alone. Limits of
// Gateways and ListenerSets have the first one for themselves, and those of a namespace's routes
// one of the others: who edits his own limits gives nobody a fresh start with those of the platform.
func RateLimitSlot(k ir.RateLimitKey) int {
	first, slots := 0, lateSlots
	if k.Early {
		first, slots = lateSlots, earlySlots
	}
	if k.On.Kind == kind.Gateway || k.On.Kind == kind.ListenerSet {
		return first
	}
	return first + 1 + int(xxhash.Sum64String(k.Policy.Namespace)%uint64(slots-1)) //nolint:gosec // less than the number of slots
}

// RateLimitFilter is what the filter of a slot is called, and its configuration.
func RateLimitFilter(slot int) string { return "gatehouse.limits." + strconv.Itoa(slot) }

// IsRateLimitFilter reports whether a filter is one of those that count.
func IsRateLimitFilter(name string) bool {
	for slot := range RateLimitSlots {
		if name == RateLimitFilter(slot) {
			return true
		}
	}
	return false
}

// limitFilters are filters that count, without any limits until these have come.
func limitFilters(first, n int) (out []*hcmv3.HttpFilter) {
	for slot := first; slot < first+n; slot++ {
		out = append(out, &hcmv3.HttpFilter{
			Name: RateLimitFilter(slot), Disabled: true,
			ConfigType: &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
				ConfigSource: ads(), DefaultConfig: constant(noLimits(RateLimitFilter(slot))),
				TypeUrls: []string{constant(&localratelimitv3.LocalRateLimit{StatPrefix: "x"}).TypeUrl},
			}},
		})
	}
	return out
}

// noLimits is a filter that lets everything pass.
func noLimits(name string) *localratelimitv3.LocalRateLimit {
	return &localratelimitv3.LocalRateLimit{StatPrefix: name}
}

// EmptyExtension answers a subscription to the configuration of a filter that has none: of one
// that has no limits, of one in front of a table, or of one that has no route.
func EmptyExtension(name string) *Resource {
	if IsRateLimitFilter(name) {
		return emptyLimits(name)
	}
	if _, is := AccessTable(name); is {
		return noAccess(name)
	}
	return closing(name)
}

func emptyLimits(name string) *Resource {
	r, err := resource(Extensions, name, &corev3.TypedExtensionConfig{Name: name, TypedConfig: constant(noLimits("gatehouse.limits"))})
	if err != nil {
		panic(fmt.Sprintf("envoy: filter %q: %v", name, err))
	}
	return r
}

// LimitFilter returns the configuration of the filter of a slot, with its limits.
func LimitFilter(slot int, limits []ir.RateLimit) (*Resource, error) {
	always := &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{Numerator: 100}}
	m := &localratelimitv3.LocalRateLimit{
		StatPrefix: RateLimitFilter(slot), Stage: uint32(slot), //nolint:gosec // less than the number of slots
		FilterEnabled: always, FilterEnforced: always,
		AlwaysConsumeDefaultTokenBucket: wrapperspb.Bool(false),                          // there is none
		MaxDynamicDescriptors:           wrapperspb.UInt32(uint32(countsOfEach(limits))), //nolint:gosec // at most maxCounts
		EnableXRatelimitHeaders:         ratelimitv3.XRateLimitHeadersRFCVersion_DRAFT_VERSION_03,
		EnableRetryAfterHeader:          true,
		RateLimitedAsResourceExhausted:  true,
	}
	for name, l := range counted(limits) {
		for at, rate := range l.Rates {
			d := &ratelimitv3.LocalRateLimitDescriptor{
				Entries: []*ratelimitv3.RateLimitDescriptor_Entry{{Key: limitEntry, Value: rateName(name, at)}},
				TokenBucket: &typev3.TokenBucket{
					MaxTokens: rate.Limit, TokensPerFill: wrapperspb.UInt32(rate.Limit), FillInterval: durationpb.New(rate.Window),
				},
			}
			// Without a value: each has a count of its own.
			if len(l.Counters) > 0 {
				d.Entries = append(d.Entries, &ratelimitv3.RateLimitDescriptor_Entry{Key: targetEntry})
			}
			for n, c := range l.Counters {
				d.Entries = append(d.Entries, &ratelimitv3.RateLimitDescriptor_Entry{Key: counterEntry(n, c)})
			}
			m.Descriptors = append(m.Descriptors, d)
		}
	}
	config, err := pack(m)
	if err != nil {
		return nil, err
	}
	return resource(Extensions, RateLimitFilter(slot), &corev3.TypedExtensionConfig{Name: RateLimitFilter(slot), TypedConfig: config})
}

// limitEntry is the part of a request's description that names a count, here and for the service.
const limitEntry = descriptor.KeyLimit

// targetEntry is the part of a request's description that says for which target of its policy a
// limit with counters is in force.
const targetEntry = "target"

// countedName names the counts of a limit by which each proxy counts alone. Of one with counters it is
// the same for all targets of its policy: these are one more counter. So a policy costs a proxy
// the same whatever it is for, and what it is for can change without an edit of the filter.
func countedName(k ir.RateLimitKey, counters []ir.Counter) string {
	if len(counters) > 0 {
		return k.Policy.String() + "/" + k.Limit
	}
	return k.String()
}

// counted yields the limits by the names of their counts, one of those for several targets of a policy.
func counted(limits []ir.RateLimit) iter.Seq2[string, *ir.RateLimit] {
	return func(yield func(string, *ir.RateLimit) bool) {
		seen := map[string]bool{}
		for i := range limits {
			l := &limits[i]
			if name := countedName(l.Key, l.Counters); !seen[name] {
				seen[name] = true
				if !yield(name, l) {
					return
				}
			}
		}
	}
}

// rateName names the counts of one of a limit's rates.
func rateName(limit string, rate int) string { return limit + "#" + strconv.Itoa(rate) }

// addressEntry is what Envoy itself calls an address.
const addressEntry = "masked_remote_address"

// counterEntry is the part of a request's description that a counter sees.
func counterEntry(n int, c ir.Counter) string {
	if c.Of == ir.ClientAddress {
		return addressEntry
	}
	return strconv.Itoa(n)
}

// counts describes requests for the limits in force by which each proxy counts alone.
func counts(l *ir.RateLimits, domain string) (out []*routev3.RateLimit, err error) {
	if l == nil {
		return nil, nil
	}
	for i := range l.Counted {
		in := &l.Counted[i]
		if in.Global != nil {
			continue
		}
		counters, err := counterActions(in.Counters, domain)
		if err != nil {
			return nil, err
		}
		if len(counters) > 0 {
			counters = append([]*routev3.RateLimit_Action{described(targetEntry, in.Key.Target())}, counters...)
		}
		for rate := range in.Rates {
			limit, err := limitOf(rateName(countedName(in.Key, in.Counters), rate), conditionOf(in))
			if err != nil {
				return nil, err
			}
			out = append(out, &routev3.RateLimit{
				Stage:   wrapperspb.UInt32(uint32(RateLimitSlot(in.Key))), //nolint:gosec // less than the number of slots
				Actions: append([]*routev3.RateLimit_Action{limit}, counters...),
			})
		}
	}
	return out, nil
}

// counterActions describes what counters see of a request. A request of which a part were left out would
// not be counted at all, so every part always has a value.
func counterActions(counters []ir.Counter, domain string) (out []*routev3.RateLimit_Action, err error) {
	for n, c := range counters {
		a, err := count(counterEntry(n, c), c, domain)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// count describes what a counter sees of a request.
func count(key string, c ir.Counter, domain string) (*routev3.RateLimit_Action, error) {
	switch c.Of {
	case ir.ClientAddress:
		return &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_MaskedRemoteAddress_{
			// Whoever has one address of IPv6 has as many as he likes of those around it.
			MaskedRemoteAddress: &routev3.RateLimit_Action_MaskedRemoteAddress{V4PrefixMaskLen: wrapperspb.UInt32(32), V6PrefixMaskLen: wrapperspb.UInt32(64)},
		}}, nil
	case ir.ClientName:
		return formatted(key, "DYNAMIC_METADATA", accessMetadata+":client", longestValue), nil
	case ir.TokenClaim:
		return formatted(key, "DYNAMIC_METADATA", strings.Join(append([]string{tokenMetadata, tokenKey}, c.Claim...), ":"), longestValue), nil
	case ir.RequestHeader:
		return formatted(key, "REQ", c.Header, longestValue), nil
	case ir.RequestHost:
		// A client may spell a host as it likes, in small and in large letters and with a port.
		return described(key, domain), nil
	case ir.RequestMethod:
		return formatted(key, "REQ", ":METHOD", longestMethod), nil
	case ir.RequestPath:
		return formatted(key, "PATH", "NQ:PATH", longestPath), nil
	}
	return nil, fmt.Errorf("requests can't be counted by %q", c.Of)
}

func described(key, value string) *routev3.RateLimit_Action {
	return &routev3.RateLimit_Action{ActionSpecifier: &routev3.RateLimit_Action_GenericKey_{
		GenericKey: &routev3.RateLimit_Action_GenericKey{DescriptorKey: key, DescriptorValue: value},
	}}
}

// formatted describes what a command of Envoy's format strings gives. Proxies follow it since
// their bootstrap says so; they take it for a word otherwise, and have one count for all.
func formatted(key, command, of string, longest int) *routev3.RateLimit_Action {
	a := described(key, fmt.Sprintf("%%%s(%s):%d%%", command, of, longest))
	a.GetGenericKey().DefaultValue = nothing
	return a
}

// here enables a filter for a level with the configuration that comes by discovery, without one of the
// level's own. A level must name one, and of the router Envoy knows that there is none.
var here = constant(&routev3.FilterConfig{IsOptional: true, Config: constant(&routerv3.Router{})})

// neededSlots are the filters that limits need.
func neededSlots(l *ir.RateLimits) (out [RateLimitSlots]bool) {
	if l != nil {
		for i := range l.Counted {
			if l.Counted[i].Global == nil {
				out[RateLimitSlot(l.Counted[i].Key)] = true
			}
		}
	}
	return out
}

// enableLimits enables the filters that the limits of a level need, and disables those that only
// the level around it needs.
func enableLimits(filters *map[string]*anypb.Any, l, outer *ir.RateLimits, domain string) error {
	set := func(name string, needed bool, config *anypb.Any, around bool) {
		if !needed && !around {
			return
		}
		if !needed {
			config = disabled
		}
		put(filters, name, config)
	}
	for _, w := range limitWhens {
		conditions, err := limitConditions(whens(l, w.early))
		if err != nil {
			return err
		}
		set(w.name, conditions != nil, conditions, len(whens(outer, w.early)) > 0)
	}
	needed, around := neededSlots(l), neededSlots(outer)
	for slot := range RateLimitSlots {
		set(RateLimitFilter(slot), needed[slot], here, around[slot])
	}
	return setSharedLimits(set, l, outer, domain)
}

// disabled switches a filter off.
var disabled = constant(&routev3.FilterConfig{Disabled: true})
