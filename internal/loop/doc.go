// Package loop drives a pipeline: it takes what sources and proxies say, runs the
// transactions, tells proxies what has changed, and lets others follow each commit.
//
// Every mode has one Loop. A mode is what it puts around it: sources, where proxies
// run, and who is told of statuses.
//
// Invariants:
//   - One goroutine runs transactions, and nothing in it waits for a disk or a network.
//     What is read of Secrets and ConfigMaps comes back as a batch like any other.
//   - Proxies are told of a listener and of the contents that it names at the same
//     time. Meanwhile endpoints go on to be sent, and what other Gateways change.
//   - What proxies said of a Gateway that is gone is forgotten before it comes back.
//
// What an object means, and what proxies are sent, is for the pipeline to say.
package loop
