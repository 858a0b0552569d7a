// Package control wires one pipeline together and runs it.
//
// Pipeline is the pure part: it declares the tables from inputs to resources and
// statuses, and turns a commit into what a proxy and a person must hear of it.
// Standalone is the mode of `gatehouse run`: files in, child Envoy processes out.
//
// Invariants:
//   - One goroutine runs transactions. Sources, proxies and ports reach it as
//     inputs; nothing calls into the middle of a computation.
//   - One commit carries configuration, status and fleet changes that were
//     computed from the same inputs.
//   - Feedback is an input like any other: what a proxy acknowledged or refused
//     takes effect in the next commit.
//
// What an object means belongs to topology and translate; the order in which a
// proxy hears of a commit to xds.
package control
