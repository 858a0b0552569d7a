// Package proxy owns the Envoy process of a Gateway on this machine: it finds
// or installs the binary, writes the bootstrap, starts Envoy, restarts it when
// it dies, drains it, and asks its admin interface.
//
// Invariants:
//   - Serving traffic does not depend on this process. An Envoy survives a
//     kill -9 of its supervisor, and the next supervisor adopts it when nothing
//     that it was started with has changed.
//   - An Envoy that stands still (it answers nothing, and its main thread does no
//     work) is killed and started again. One that is busy is not killed, however long
//     it answers nothing.
//   - At most one Envoy serves a Gateway: the private directory is locked, and
//     a leftover that can't be adopted is drained and stopped first.
//   - Files deleted under a running Envoy, by a cleaner of temporary files, cost
//     neither its traffic nor the invariants above.
//   - Nothing listens on TCP but the Gateway's own listeners: xDS and admin
//     are Unix sockets in private directories.
//
// What Envoy should serve comes over xDS, so nothing here depends on
// listeners, routes or protos, and go-control-plane is not imported.
package proxy
