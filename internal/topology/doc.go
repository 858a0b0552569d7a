// Package topology is the graph of network objects: which classes and Gateways
// are ours, which listeners they have, which routes attach to which listeners,
// which Services and Secrets are behind them, and what is wrong with each.
//
// Nodes are values of flow tables: Class, Gateway, ListenerSet, Listener,
// Certificate, Authority, BackendTLSPolicy, Route of every kind, Attachment, and
// what else is in Graph. Sections are nodes with an identity of their own. A missing
// object is a fact about the node that misses it, and its arrival wakes exactly
// that node.
//
// Invariants:
//   - Inputs are read-only: a node points at its source object and never writes
//     into it, and nobody writes into a node once it is in a table.
//   - Objects of foreign classes cost nothing beyond one look at them.
//   - What routes read of a Gateway changes with its spec alone: a certificate that
//     is rotated, or a status that is written, runs nothing once for each route.
//   - What a route may be sent to is known by the key of its backend from here on,
//     whatever kind of object it is.
//   - A problem belongs to the smallest node that has it: one bad listener leaves
//     its Gateway's others alone, one bad reference leaves its rule's others.
//
// What a route does to a request is translate's matter; what a proxy said of it,
// and the final status, status's.
package topology
