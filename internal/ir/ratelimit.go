package ir

import (
	"net/netip"
	"reflect"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// RateLimitKey names a limit by where it is from and what it counts. It is the same at all
// levels that say that the limit is in force, so that one count is over all of them.
type RateLimitKey struct {
	Policy  object.Name `json:"policy"`
	Limit   string      `json:"limit"`             // its name in the policy
	On      object.Key  `json:"on"`                // what the policy targets
	Section string      `json:"section,omitempty"` // of that
	Early   bool        `json:"early,omitempty"`   // it counts before it is known who a client is
}

// String returns a name that no other limit has.
func (k RateLimitKey) String() string {
	return k.Policy.String() + "/" + k.Limit + " on " + k.Target()
}

// Target returns a name of what the policy targets that no other target has.
func (k RateLimitKey) Target() string {
	if k.Section != "" {
		return k.On.String() + "/" + k.Section
	}
	return k.On.String()
}

// RateLimit is a limit by which each proxy counts alone, with all that it says.
type RateLimit struct {
	Key      RateLimitKey `json:"key"`
	Rates    []Rate       `json:"rates"` // all of them must be kept to
	Counters []Counter    `json:"counters,omitempty"`
}

// Rate is how many requests are let through in a time.
type Rate struct {
	Limit  uint32        `json:"limit"`
	Window time.Duration `json:"window"`
}

// CounterKind is what of a request a counter looks at.
type CounterKind string

// What counters look at. What is not there, or is empty, is a value like any other.
const (
	ClientAddress CounterKind = "ClientAddress" // as the proxy sees it; of IPv6 the first 64 bits
	ClientName    CounterKind = "ClientName"    // whose API key, password or certificate it is
	TokenClaim    CounterKind = "TokenClaim"
	RequestHeader CounterKind = "RequestHeader"
	RequestHost   CounterKind = "RequestHost" // the host that the routes are for
	RequestMethod CounterKind = "RequestMethod"
	RequestPath   CounterKind = "RequestPath" // without its query
)

// Counter is a part of requests: those in which it is the same are counted together.
type Counter struct {
	Of     CounterKind `json:"of"`
	Header string      `json:"header,omitempty"` // in lower case
	Claim  []string    `json:"claim,omitempty"`  // the path to it
}

// RateLimits are the limits that are in force for requests: all of them. The zero value limits
// nothing, also where a level around does. They say how requests are counted. How many are let
// through is said here of limits by which proxies count together, and by a place of its own of
// the others.
type RateLimits struct {
	Counted []Counted `json:"counted,omitempty"` // sorted by the names of the limits
}

// Equal reports whether the same is counted in the same way.
func (l *RateLimits) Equal(o *RateLimits) bool { return l == o || reflect.DeepEqual(l, o) }

// Counted is how requests are counted for a limit.
type Counted struct {
	Key      RateLimitKey `json:"key"`
	Rates    int          `json:"rates"` // how many counts there are
	Counters []Counter    `json:"counters,omitempty"`
	When     string       `json:"when,omitempty"`   // an expression: those of which it is certainly false don't count
	Global   *GlobalLimit `json:"global,omitempty"` // nil where each proxy counts alone
	// In and NotIn are the addresses of clients whose requests count, and whose don't; all do without.
	In    []netip.Prefix `json:"in,omitempty"`
	NotIn []netip.Prefix `json:"notIn,omitempty"`
}

// GlobalLimit is what a limit says besides by which the proxies of a Gateway count together.
type GlobalLimit struct {
	Rates  []Rate   `json:"rates"`
	Tokens []string `json:"tokens,omitempty"` // the path in answers to what they have cost; a request is one without it
	// Statuses are those of answers for which a request counts; all do without.
	Statuses []int64 `json:"statuses,omitempty"`
	Deny     bool    `json:"deny,omitempty"`   // nothing passes that can't be counted
	Shadow   bool    `json:"shadow,omitempty"` // everything passes, and is counted
}
