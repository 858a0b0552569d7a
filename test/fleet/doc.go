// Package fleet simulates fleets: proxies that hold a connection each to a real controller,
// as an Envoy with its agent does, and that take in configuration without serving anybody.
// A thousand of them fit where two real ones do. The controller is a process of its own
// before a real API server, so that its CPU and memory are told from those of the simulation.
//
// Invariants:
//   - A simulated proxy subscribes to what a real Envoy subscribes to, and answers the same
//     responses: TestLikeEnvoy holds both to the same configurations.
//   - Each has a certificate of the controllers' authority, a pod, and that pod's address on
//     loopback. Nothing leaves this machine.
//   - Between a controller and the API server stands a Gate, which counts requests, and can
//     delay or refuse them.
//
// `make fleet` holds a controller to its bars with 1,000 of them. Package faults, beside this
// one, breaks things under them.
package fleet
