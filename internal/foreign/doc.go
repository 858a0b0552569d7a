// Package foreign knows the policies of other implementations of the Gateway API: who wrote one for
// what Gatehouse serves believes that it is in force, and is to be told that it is not.
//
// Invariants:
//   - A policy's kind is in the table, or nobody looks at it: that a policy has no effect can be said
//     only of those whose implementation serves Gateways itself. Kinds of controllers that
//     work beside any implementation, such as those for DNS names, are not there.
//   - Of a policy no more is read than what it targets.
//
// Whether a target is served here is package pipeline's matter, and what a person is told of it
// package condition's.
package foreign
