// Package teardown prepares the end of an installation: what the controllers hold in the
// cluster is released, so that it can be deleted without one of them.
//
// A GatewayClass that Gateways use has a finalizer, which only a controller takes away.
// Whoever deletes the controllers first would leave a class that can't go.
//
// Invariants:
//   - The controllers have ended before anything is released: one that runs would put the
//     finalizer back, or take a class that goes as a reason to take its Gateways' proxies
//     away.
//   - Only classes of our controllerName are touched, and of those only our finalizer. The
//     Lease of the controllerName goes if it is that of these controllers. Where it is
//     another installation's, that one serves the classes, and nothing of them is touched.
//   - It can be run again, whatever it has done before.
//
// Gateways, their proxies and whatever people wrote stay: a controller that is installed
// again goes on with them.
package teardown
