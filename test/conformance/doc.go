// Package conformance runs the official conformance suite of the Gateway API against a
// Gatehouse that runs in a cluster, in all profiles for gateways, and keeps its reports
// in the form that the Gateway API project publishes.
//
// It is a module of its own, so that nothing the suite depends on becomes a dependency
// of Gatehouse. What the suite tests follows from what the GatewayClass says of itself
// in status.supportedFeatures: there is no list here of what is to be left out.
package conformance
