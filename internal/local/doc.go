// Package local runs the Envoys of Gateways on this machine, as processes beside this
// one: those of `gatehouse run` and of `gatehouse static-mode`.
//
// Invariants:
//   - Each Gateway has one Envoy, with a socket of its own from which it gets its
//     configuration. The socket is the proxy's identity: who can reach it is that
//     Gateway, whatever it says of itself.
//   - An Envoy goes on being configured while it drains.
//   - Gateways' directories are found again by the next run, whose Envoys they may be.
//
// How one Envoy is started, watched and ended belongs to package proxy.
package local
