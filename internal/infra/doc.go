// Package infra gives each Gateway its fleet: the Kubernetes objects that run its
// proxies and lead traffic to them.
//
// Render is the pure part: it returns the objects that a Gateway should have. Applier
// does the I/O: it applies them to the cluster, and keeps them as they should be.
//
// Invariants:
//   - Names depend on the Gateway and its class alone, so that a restart finds what
//     it made before.
//   - An object that is already as it should be is not written. What others have
//     changed is changed back, what they have deleted is made again.
//   - Every object has its Gateway as owner, so that Kubernetes deletes it with the
//     Gateway, whether we run or not.
//   - A Gateway that is held (Gateway.Held) keeps the fleet that it has, whatever else it
//     says; only the authorities that its proxies trust are renewed.
//
// What a Gateway serves does not belong here. Its proxies get that over xDS.
package infra
