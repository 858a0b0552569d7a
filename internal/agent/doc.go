// Package agent runs the proxy of a Gateway inside its pod: it supervises Envoy,
// carries Envoy's conversation with the control plane, and tells the cluster when
// to send clients and when not.
//
// Invariants:
//   - Envoy serves on while the control plane is away, for however long.
//   - Ready means that the first configuration is in force. It ends with the first
//     signal to stop, a while before the first client notices anything else.
//   - A control plane that stands still is left within 5 s and dialled anew. A busy
//     machine is not taken for one.
//   - What Envoy and the control plane say to each other is carried as bytes:
//     nothing here can change it, or must know it.
//   - Everything that it writes lies in its state directory.
//
// What the proxy is to others, its certificate, is not made here: whoever runs an
// Agent hands it a Dial that proves who it is.
package agent
