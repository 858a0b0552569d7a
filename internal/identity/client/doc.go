// Package client gets a proxy its identity: certificates of the controller's
// authority, for keys that never leave this process, in exchange for the token of
// the pod's ServiceAccount.
//
// Invariants:
//   - Each certificate has a key of its own. Neither is ever written to a file.
//   - The controller is trusted by the authorities in a file, which is read again
//     as it changes; nothing that the controller says adds to them.
//   - A certificate is renewed long before it ends. When it can't be, the last one
//     is used for as long as it is valid, and the proxy goes on serving in any case.
//
// What the certificate is used for is up to the caller. Nothing here knows
// Kubernetes or Envoy.
package client
