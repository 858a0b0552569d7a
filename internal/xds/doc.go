// Package xds serves each Gateway's resources to its proxies over the delta
// aggregated discovery service, and learns from their answers what is in force.
//
// Invariants:
//   - Apply never waits for a proxy, and no proxy waits for another: a session has a
//     set of the names that it has not sent yet, and later commits merge into it.
//   - Make before break, by order on the stream: clusters with their endpoints,
//     secrets, extensions, listeners, routes, removals. Removals wait for the answer to
//     the extensions, listeners and routes that are sent before them. These wait, for a
//     short time at most, until the proxy has asked for the secrets of new clusters, and
//     for the route tables of new scopes, which go ahead of the listeners that use them.
//     Nothing else waits, but what only connections that drain use, see spare.go.
//   - Every subscription is answered at once, with an emptied resource for one that
//     does not exist. Nothing is answered before a Gateway's first Update.
//   - A resource that a proxy refuses is in quarantine, for all proxies of its revision, until it changes: its last good
//     version stays in force, unless that lets pass what the new one is there to stop
//     (envoy.Guard) or, where something closes, no good version is known, and everything else
//     of the same change goes into force.
//     What Envoy refuses without a name goes alone, endpoints until a proxy of the
//     Gateway has taken them.
//   - Which Gateway a proxy belongs to follows from the listener that it dialed or from
//     its certificate, never from its node.
//   - What a proxy has acknowledged, and is still to have, costs a bit, see settled.go. The bytes of a resource
//     are the same for all proxies, see encode.go.
//   - A type of resources is a row of the table in types.go: its place in the order,
//     what it waits for, how it is refused and removed. Nothing else distinguishes
//     types, except State, which has the listeners in force.
//
// What the resources contain is the concern of package envoy.
package xds
