// Package parameters says what GatewayParameters come to: how the levels of a class, of
// its overrides and of a Gateway are merged, what of them can't be used, and what of
// them is kept while they can't be.
//
// Invariants:
//   - Every function is pure. The result may share parts with what it comes from, and
//     nobody writes into either.
//   - What Envoy or the API server would refuse is an error here, with its field: a
//     mistake costs the Gateways that have these parameters and nothing else.
//
// Which parameters a Gateway has, and what is said of them, is for topology to find;
// what a setting does belongs to those who put it into effect.
package parameters
