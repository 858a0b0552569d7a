// Package topology is a graph of the network objects of the Kubernetes Gateway API and of
// the policies on them, held in memory, for controllers of policies of any kind.
//
// A [Graph] is fed with objects, from informers, files or anywhere ([Graph.Update]), and
// answers from memory: which routes are attached to which listeners ([Graph.Paths],
// [Graph.Children]), and what the policies of a kind say together on each path from a
// GatewayClass to a rule of a route ([Policies.Effective]), with the policy that each part
// comes from. A change costs what it touches, and says which paths it concerns
// ([Policies.Changes]).
//
// A kind of policy is described by what its policies target and by the named rules that
// they have ([Kind]). How the rules of several policies go together is the law of
// GEP-713, the same for all kinds:
//
//   - A path leads from a GatewayClass over a Gateway, perhaps a ListenerSet, a listener
//     and a route to a rule. Policies may target any of them. A route that is attached to
//     two listeners is on two paths, and what is in force may differ.
//   - The policies on a path have an order: the one with the target nearest to the
//     GatewayClass is the most established one, then the older one, then the one whose name
//     comes first.
//   - Each policy says what becomes of it when those behind it challenge it: its
//     [Strategy]. Defaults give way and overrides do not, as a whole (atomic) or rule by
//     rule (merged).
//
// Edges are attachments, not references: a route is below a listener if the listener's
// namespaces, kinds and hostnames and the ReferenceGrants allow it. What is referred to and
// does not exist is a node too.
//
// A Graph may be read by any number of goroutines while one updates it. Objects that it
// was given may not be written to any more.
//
// What does not belong here: requests to an API server (see package watch below this one),
// what a policy does to traffic, and what proxies have acknowledged.
package topology
