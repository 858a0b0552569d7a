// Package topology is the graph of network objects: which GatewayClasses and Gateways
// are ours, which listeners they have, which routes attach to which listeners, which
// backends and Secrets they refer to, and what is wrong with each.
//
// A node is a value of a flow table: Class, Gateway, ListenerSet, Listener, Certificate,
// Authority, BackendTLSPolicy, Route of every kind, Attachment, and what else is in
// Graph. A listener and a rule are nodes or parts of nodes with names of their own. A
// missing object is a problem of the node that refers to it. When the object comes, the
// functions that have missed it run again, and no others.
//
// A Gateway is ours if its class names our controller, or is Options.ImplicitClass, or if
// its class doesn't exist and the one that it had was ours. A ListenerSet is ours if its
// Gateway is. A route is ours if one of its parentRefs names a Gateway or ListenerSet of
// ours, or if it asks for a default Gateway of ours. With an ImplicitClass no other
// controller shares the objects, so that references to Gateways and ListenerSets that
// don't exist are ours to answer too.
//
// Invariants:
//   - Inputs are read-only: a node points at its source object and never writes
//     into it. A node that is in a table is never written to.
//   - An object of a foreign class costs one comparison of its class.
//   - What routes read of a Gateway follows from its spec and its class's rules for
//     hostnames. A rotated certificate or a written status changes nothing that is
//     computed for each route.
//   - Of Secrets and ConfigMaps only those are looked for that may be referred to.
//   - A backend is known by its typed key, whatever kind of object it is.
//   - A problem is a condition of the smallest node that has it. A bad listener changes
//     no other listener of its Gateway, and a bad reference no other rule of its route.
//   - Nothing here names a resource of Envoy. Package translate decides which route table
//     a listener has, from its Frontend.
//
// What policies of our own kinds contain is read by the packages below policy, which are told here
// what they refer to. What a route does to a request is decided by package translate. What proxies have
// answered, and the final statuses, belong to package status. The words are defined in
// docs/developer/glossary.md.
package topology
