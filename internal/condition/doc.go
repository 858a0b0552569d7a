// Package condition makes every status condition that Gatehouse sets, one
// constructor for each thing that can be said.
//
// A message is for a person who knows nothing else of the problem: it names the
// object, says what is wrong, and what to do.
//
// Invariants:
//
//   - Types and reasons are the Gateway API's wherever it has one that fits.
//
//   - A condition carries no observedGeneration and no lastTransitionTime: they
//     belong to one writing of a status, and the status stage sets them.
//
//   - Equal arguments give equal conditions. Lists in a message keep the order in
//     which they were given.
//
//   - A message names an object that the condition's object doesn't refer to only through
//     Reader, which says who is told of whom.
//
// The decision which condition holds does not belong here.
package condition
