// Package limits is what RateLimitPolicies contain: rates, what requests are counted by, and who
// counts.
//
// Invariants:
//   - Limits that are broken are not among a policy's rules. With nothing but broken ones it says
//     nothing, and takes the place of no other.
//   - What proxies keep counts for is bounded for each namespace, older policies first ([Over]).
//
// The service by which proxies count together is package ratelimit; what a policy is for is package
// topology's to know.
package limits
