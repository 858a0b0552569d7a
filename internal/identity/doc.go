// Package identity lets controllers and proxies know each other. It has an authority
// of our own, certificates for proxies in exchange for their pods' tokens, and the
// HTTPS server where proxies ask for them.
//
// Invariants:
//   - A certificate names a pod and its Gateway, and nothing but the pod's token
//     decides which: not what the request, the node or a label says.
//   - The authority's keys are in one Secret and in the memory of controllers.
//     Certificates and their keys are stored nowhere.
//   - A new root is known to everybody before it signs, and an old one stays known
//     until the last certificate that it signed has ended.
//   - What is refused is logged with its reason and counted, at a bounded cost. No
//     token is logged, and an address that asks too often is refused without any work.
//
// Package xds decides what a proxy is sent. Package client is the proxies' side.
package identity
