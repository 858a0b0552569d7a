// Package provisionermode gives each Gateway of one class a process of its own: a
// Deployment that runs `gatehouse static-mode` for it, control plane and proxy in
// one, in the namespace that the provisioner runs in. It is for tests of
// conformance and for those who want the strongest isolation; `gatehouse
// controller` is for production.
//
// Invariants:
//   - A Deployment is made for a Gateway, and deleted with it or when the Gateway
//     leaves the class. An update of a Gateway is the business of its process.
//   - Names follow from the Gateway and its class alone, so a restart makes nothing
//     twice and loses nothing.
//   - Status of Gateways is written by their processes, that of GatewayClasses here.
//   - Nothing that users write ends the process: it is reported and tried again.
package provisionermode
