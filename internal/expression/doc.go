// Package expression reads the CEL expressions that policies have about requests, and puts
// them into Envoy's terms.
//
// Invariants:
//   - What is accepted has a type that fits, names nothing that doesn't exist, and uses
//     nothing that Envoy doesn't have. Whoever wrote something else is told where.
//   - An expression takes time in proportion to the request: there are no loops, and what is
//     searched for stands in the expression.
//   - A variable is the same to an expression and to the routes: paths are those by which
//     routes are chosen, and hosts have neither capitals nor ports.
//   - What a request doesn't have is an error when it is asked for, and never false. What an
//     error means is for those to say who use the expression.
//
// What an expression is for, and which filter evaluates it, does not belong here.
package expression
