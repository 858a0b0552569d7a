// Package agent runs the proxy of a Gateway inside its pod: it supervises Envoy,
// relays Envoy's stream of xDS to the control plane, and answers the probes by which the
// cluster decides whether clients are sent to the pod.
//
// Invariants:
//   - Envoy goes on serving while the control plane is not reachable, for however long.
//   - Ready means that the first configuration is in force. The pod is unready from the
//     first signal to stop, a while before connections are drained.
//   - The connection to a control plane that stands still is closed within 5 s, and another
//     is dialled. A busy machine alone does not cause this.
//   - The stream is relayed as bytes: nothing here changes it. What Envoy acknowledges is read
//     from the side and kept. An Envoy that starts, and that no control plane answers within some
//     seconds, is served from that, and goes on by what has changed when one does.
//   - It writes files only in its state directory.
//
// The proxy's certificate is not made here: the caller gives a Dial that authenticates
// the proxy.
package agent
