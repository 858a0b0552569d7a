// Package auth is what AuthPolicies contain: who may pass, by which credentials and on which
// conditions.
//
// A policy is read once for each of its versions and of what it refers to, [Read]; what several
// say together becomes what a proxy is told, [Access].
//
// Invariants:
//   - A policy that can't be used has all its rules nevertheless, and by those that are broken
//     nobody passes.
//   - What a policy refers to is asked of its [World], and of nothing else, so that who reads it is
//     woken by what was read.
//   - Secrets are kept as salted sums wherever a sum suffices, and in types that print nothing.
//
// What a policy is for, whether its targets exist, and which tables hold it does not belong here:
// package topology knows that.
package auth
