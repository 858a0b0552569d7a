// Package schema turns a generic document into a typed Kubernetes object exactly
// as an API server would: unknown fields, defaults, schema, list types and CEL
// rules, by the API server's own packages and the CustomResourceDefinitions of
// the Gateway API version in go.mod. What passes here passes in a cluster.
//
// Invariants:
//   - Every served version of a kind comes out as one Go type, its v1 form.
//   - A kind's schema is compiled when its first object comes, once for all
//     Validators, since that costs about 0.1 s and most users have few kinds.
//   - Whether all is well is asked of a cheaper way first (fast), made of the same packages;
//     what is wrong, and any doubt, is for the API server's own. It decides alone what is refused.
//   - Errors carry the field's path and never the value of a Secret.
//
// Where text comes from, what it replaces, and what an object means are the
// business of other packages. The one deliberate difference from a cluster:
// EndpointSlices may hold loopback addresses, as a backend on this machine does.
package schema

//go:generate go run gen.go
