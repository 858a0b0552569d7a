// Package xds serves each Gateway's resources to its proxies over the delta
// aggregated discovery service, and learns from their answers what is in force.
//
// Invariants:
//   - Apply never waits for a proxy, and no proxy waits for another: what a slow
//     one has not been sent is a set of names, into which later commits merge.
//   - Make before break, by order on the stream: clusters with their endpoints,
//     secrets, listeners, routes, removals. Removals wait for the answer to the
//     listeners and routes sent before them; listeners and routes wait, and not for
//     long, until the proxy has asked for the secrets of new clusters. Nothing else
//     waits.
//   - Every subscription is answered at once, with an emptied resource where
//     there is none, but nothing is answered before a Gateway's first Update.
//   - A resource that a proxy refuses is quarantined: the last good one stays in
//     force, everything else of the same change goes live, and nothing but a
//     change of the resource itself ends it. What Envoy refuses without a name goes
//     alone, endpoints until a proxy of the Gateway has taken them.
//   - Who a proxy is follows from the listener that it dialed or from its
//     certificate, never from its node.
//
// What the resources say is package envoy's business.
package xds
