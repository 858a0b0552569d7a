// Package cluster is the mode of `gatehouse controller` and `gatehouse static-mode`: the
// objects of a Kubernetes cluster in, statuses and fleets out. It puts together sources,
// a loop, a place where proxies run and, while this replica leads, those who write.
//
// Invariants:
//   - All replicas compute and serve everything. Only the one that holds the Lease
//     writes, and for no longer than it holds it for sure.
//   - A process may have a part of the roles. What those of another role need to know of
//     it stands in objects, and nothing of it is computed twice.
//   - Nothing is removed, and no proxy is served, before all that exists is known.
//   - What an API server does slowly, or not at all, holds up no configuration.
//
// What differs between the two commands is a selection of what is served, and the
// proxies, each behind an interface; nothing else asks which of them runs.
package cluster
