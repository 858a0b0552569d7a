// Package translate turns topology nodes into ir: routes into rules, the rules
// that meet on a host into their order, listeners into ports with chains.
//
// There is one file for each feature of the Gateway API, and the feature has the
// same file name in package envoy.
//
// Invariants:
//   - Every function is pure and keeps its arguments as they are; results may share
//     memory with each other and are immutable.
//   - A value that Envoy would refuse never leaves this package: its rule answers
//     with an error (or, where there are no requests, forwards nothing) instead and
//     is reported as a Problem, and all other rules are as before.
//   - A route's rules do not depend on where the route is attached. What does (the
//     port in a redirect, cookies for HTTPS only) is finished by Host.
//
// Reading tables, attachment, conditions of listeners and Envoy's protos do not
// belong here.
package translate
