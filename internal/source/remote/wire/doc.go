// Package wire is the form in which a config server publishes objects: the incremental
// variant of Envoy's aggregated discovery service, with objects of Kubernetes as resources.
// docs/reference/config-protocol.md describes it for those who write a server.
//
// Invariants:
//   - Equal objects have equal bytes, and a version that follows from these alone: a server that
//     starts anew, or another one with the same objects, sends nothing that a client has.
//   - An age is exact to the nanosecond, since it decides between routes that conflict.
//   - A status is no part of an object here.
//
// Who may see what is the server's matter, and what an object means that of who reads it.
package wire
