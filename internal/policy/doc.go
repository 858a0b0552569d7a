// Package policy attaches policies to what they target, in one way for all kinds.
//
// A kind of policy has a descriptor, [Kind], and nodes that say what its mechanism has
// to know of them, [Node]: what they target, what they ask for, and why they can't be
// used. [Attach] declares which policies each object has, in their precedence. What the
// targets are and which Gateways they concern is package topology's to know, which also
// judges every policy by them.
//
// Invariants:
//   - Policies attach to what they name, whether it exists or not. A target that is
//     missing costs no more than its name, and nothing has to look for it.
//   - What a policy selects by labels are targets like those that it names, and one that it
//     does both ways is one target. Too many of them are bounded by age, so that a new object
//     takes nobody's place; the policy's kind says what becomes of those beyond ([Reach]).
//   - Who reads the policies of an object is woken when what they say changes, and not
//     when a policy's status, labels or other targets do.
//   - The order of policies on one target depends on the policies alone: on their age, then
//     their name (GEP-713).
//   - What several policies say together, [Combine], depends on their order and on the
//     strategy that each declares, and on nothing else. A policy that can't be used takes
//     nobody's place.
//   - An object without policies is told so by one look for many such objects together.
//
// How the policies of a path from a class to a rule are merged, and what comes of them
// in a proxy's configuration, does not belong here.
package policy
