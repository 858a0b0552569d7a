// Package identity authenticates controllers and proxies to each other. It has a
// certificate authority of our own, and the HTTPS server where proxies get certificates
// in exchange for their pods' tokens.
//
// Invariants:
//   - A certificate names a pod and its Gateway. They follow from the pod's token, never
//     from what the request, the node or a label says.
//   - The authority's keys are in one Secret and in the memory of controllers.
//     Certificates and their keys are stored nowhere.
//   - A new root is trusted by all controllers and proxies before it signs. An old one is
//     trusted until the last certificate that it signed has expired.
//   - A refused request is logged with its reason and counted, at a bounded cost. No
//     token is logged. Who asks too often is refused before anybody else is asked about it,
//     and a pod that shows its certificate is not refused for what others do.
//
// Package xds decides what a proxy is sent. Package client is the side of the proxies.
package identity
