// Package ir is what a Gateway is to serve, as plain data: listeners by port,
// hosts with ordered rules, backends with endpoints, TLS material.
//
// It lies between the Gateway API, which translate reads, and Envoy's protos,
// which envoy writes, and knows neither of them.
//
// Invariants:
//   - Identity is by content, never by position: a backend's key is everything that
//     makes its cluster, so that routes share pools and reordering rules renames
//     nothing.
//   - Keys are values that lead to what they name. Their text is for files, people and
//     proxies, and nobody reads it back.
//   - Values are complete: whatever reads them needs no other source. What could
//     not be resolved is already an answer (a status to give), not an error.
//   - Values are immutable once built, compare with Equal or ==, and print as YAML
//     with secrets as [redacted].
//
// Status conditions, Kubernetes objects and protos do not belong here.
package ir
