// Package infra gives each Gateway its fleet: the Kubernetes objects that run its
// proxies and lead traffic to them.
//
// Render is the pure part: what a Gateway's objects are to be. Applier is the rim:
// it makes the cluster so, and keeps it so.
//
// Invariants:
//   - Names depend on the Gateway and its class alone, so that a restart finds what
//     it made before.
//   - Nothing is written that is already so. What others have changed is set right,
//     what they have deleted comes back.
//   - Every object has its Gateway as owner: it ends with it, whether we run or not.
//   - A Gateway whose parameters can't be understood keeps the fleet that it has.
//
// What a Gateway serves reaches its proxies over xDS and is no part of this.
package infra
