// Package ratelimit is the rate limit service by which the proxies of one Gateway count
// together: Envoy's envoy.service.ratelimit.v3.RateLimitService.
//
// Invariants:
//   - The service has no configuration of limits. A descriptor says all that there is to
//     know of its limit (package descriptor), so proxies and the service can't disagree, and
//     a service that starts anew needs nobody to tell it anything.
//   - A window begins with the first hit of a count, and is fixed. A limit of N lets exactly
//     N through in it, whatever the number of proxies and requests in flight.
//   - All descriptors of a request are judged together. If any refuses, none is charged.
//     A shadowed one refuses nothing; it is charged as if it were enforced, so that what it
//     would have refused is told as it would have been.
//   - How many hits a descriptor stands for: its own hits_addend, else the request's if that
//     is not 0, else 1. An own one of 0 only looks: it is over once the limit is reached, and
//     charges nothing. A charge of n is over if the count and n exceed the limit. One of
//     more than MaxHits counts as MaxHits.
//   - A charge (descriptor.KeyCharge) is added even beyond the limit, refuses nothing and gets
//     no headers.
//   - If the store fails, the answer is the error Unavailable; if a request is malformed,
//     InvalidArgument. In both cases the failure mode of the proxy decides. The service
//     guesses nothing.
//   - Whose counts they are follows from what the service was started with, and never from
//     what a request says.
//
// Stores keep counts. Memory holds a million of them at most, 400,000 of one limit, in less
// than 100 MB and 45 MB; the process takes twice that, as Go's garbage collector does. Where
// there is no room, a limit loses its least recently used count: the one that counts, if it
// has as many as it may, else the one with the most. So a limit with a million values costs
// the others none. Redis is for more than one replica, and for counts that outlive the
// service; its own maxmemory bounds it, and its user has to be permitted
// -@all +hello +auth +ping +eval +evalsha +get +pttl +set +incrby +pexpire ~gatehouse:*
//
// How limits and counters become descriptors is the concern of package envoy.
package ratelimit
