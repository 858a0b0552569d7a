// Package infra says which Kubernetes objects a Gateway's fleet consists of: those that run
// its proxies and lead traffic to them.
//
// Invariants:
//   - Render is pure: the result depends on the arguments alone, and there is no client here.
//   - Names depend on the Gateway and its class alone, so that a restart finds what
//     was made before.
//   - Every object in its Gateway's namespace has that as owner, so that Kubernetes deletes it with the
//     Gateway, whether we run or not. Others go when package apply sees that the Gateway is gone.
//
// What a Gateway serves does not belong here: its proxies get that over xDS. How objects come
// into the cluster, and out of it, is for package apply.
package infra
