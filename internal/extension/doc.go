// Package extension asks extension servers for changes of what proxies are about to be sent: it stands between the
// pipeline and the xDS server.
//
// Invariants:
//   - Nobody waits for a server who isn't its user: a Gateway's updates wait for the answers about its own resources, and no
//     longer than the timeout of one call; endpoints don't wait. A server that is away is not waited for at all.
//   - A server is asked about what has changed, once: its answer counts for the same bytes until it starts anew.
//   - An answer is taken only if it changes what may be changed (see envoy.Offer). Any other one is as none.
//
// What is asked, and what an answer may change, belongs to package envoy; the protocol is in api/extension.
package extension
