// Package identity says who is who between the controllers and their proxies: an
// authority of our own, certificates for proxies in exchange for their pods'
// tokens, and the HTTPS server where these are asked for.
//
// Invariants:
//   - A certificate names a pod and its Gateway, and nothing but the pod's token
//     decides which: not what the request, the node or a label says.
//   - The authority's keys are in one Secret and in the memory of controllers.
//     Certificates and their keys are stored nowhere.
//   - A new root is known to everybody before it signs, and an old one stays known
//     until the last certificate that it signed is over.
//   - What is refused is logged with its reason and counted, at a bounded cost: no
//     token reaches the log, and who asks too often is refused without any work.
//
// What a proxy is sent is package xds' business, the proxies' side is package
// client's.
package identity
