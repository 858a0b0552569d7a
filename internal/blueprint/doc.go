// Package blueprint turns a blueprint and what is known of a Gateway into the objects that
// the Gateway's class promises beside its listeners.
//
// A blueprint is compiled once, and rendered for each Gateway and each route that it has.
// Templates are structured: an expression's value goes into a field, so that no value can
// become another field.
//
// Invariants:
//   - Everything is pure: live objects come as arguments, and a template reads no clock,
//     no file and no network.
//   - What a template reads is known from its expressions, before it is rendered: order,
//     cycles and unknown names are found when the blueprint is written.
//   - What isn't there yet (a sibling, a field of one) makes a resource wait, and nothing else
//     of its Gateway. What can't be right is an error of that one resource.
//   - Evaluation, results and loops are bounded, whoever wrote the blueprint and the values.
//
// How objects get into the cluster is for package apply to say, and which values a Gateway
// has for package topology.
package blueprint
