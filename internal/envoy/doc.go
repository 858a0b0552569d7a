// Package envoy turns ir values into Envoy's configuration, marshalled once.
//
// Each function is pure: one ir value in, one resource (or a part of one) out,
// the same bytes for the same value. Everything that Envoy would refuse is
// refused here, by the protos' own validation rules, so that one bad value costs
// one resource and names its culprit.
//
// Invariants:
//   - A resource's version is a hash of its bytes: equal content, equal version,
//     across restarts and replicas.
//   - Nothing that a route of requests says changes a listener: every HTTP filter
//     that a route may need is in the chain from the start, disabled, and a route
//     enables it for itself. TLSRoutes and TCPRoutes have no other place than the
//     listener; UDPRoutes are in endpoints.
//   - Filters stand at the level that they are for, and the inner level has the last
//     word. A host or a table whose filters can't be given to Envoy answers with an
//     error: nothing passes without them.
//   - Names are made here from keys, by one function for each type, and never read.
//   - A route table is put together from the marshalled bytes of its hosts; one
//     changed host costs one marshalling.
//
// Sessions, ordering and acknowledgements belong to package xds.
package envoy
