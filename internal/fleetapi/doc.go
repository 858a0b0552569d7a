// Package fleetapi serves the proxies of a cluster as a resource of its API:
// `kubectl get proxies -A -w`. The API server sends requests for the group here.
//
// How the objects of a namespace hang together is another: `kubectl get topology -n shop topology -o yaml`.
//
// A Store holds the proxies as they are, in memory, with what has changed of late. A Server
// answers requests with it.
//
// Invariants:
//   - Only the API server gets an answer: the handshake asks for the certificate that it shows to
//     extensions. Any pod reaches the port, and whoever could come directly could claim to be anybody.
//   - What a user may see is decided by the API server, for each request, and an error is a no.
//   - Nothing is written anywhere, and nothing can be changed here.
//   - Who reads slowly costs a goroutine, and neither memory nor others' time: a watch has a place in
//     what has changed, and no queue.
//
// Who gathers what is known of proxies is for the modes; what it means is package fleet's.
package fleetapi
