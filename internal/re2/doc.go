// Package re2 says what a regular expression is to Envoy's RE2: whether it takes it,
// how large the program is that it makes of it, and what may stand in its place.
//
// Invariants:
//   - An expression is compiled once in a process: what is known of it is kept for
//     everybody who asks, up to a bound.
//   - No expression costs much: counted repetitions are multiplied on paper, and only what
//     is small enough is accepted.
//   - What stands in place of an expression matches all that it can have meant.
//
// How many instructions a route or a Gateway may have is for those who know them to say.
package re2
