// Package traffic is what TrafficPolicies contain: settings of requests, of answers and of backends.
//
// A setting is a row of [settings]: its name, which is its field, where a policy has it, and how it is
// read into the one field of ir.Traffic that is its own. Policies are merged by these names.
//
// Invariants:
//   - Settings that are broken are not among a policy's rules. With nothing but broken ones it says
//     nothing, and takes the place of no other.
//   - No policy blocks requests: nothing of what they say guards who may pass.
//
// What a policy is for is package topology's to know, and how proxies do what a setting says is
// package envoy's.
package traffic
