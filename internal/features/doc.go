// Package features is the one list of what Gatehouse supports of the Gateway API:
// the source of GatewayClass status, of docs/reference/features.md and of what the
// conformance suite runs.
//
// Invariants:
//   - Every feature that the Gateway API names for Gateways is in the list, whether
//     it is supported or not; those of meshes are not.
//   - A feature that is supported names the end-to-end cases that prove it.
//
// What a feature does belongs to the packages that do it.
package features

//go:generate go run gen.go
