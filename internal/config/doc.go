// Package config is the bootstrap configuration of `gatehouse controller`: what a
// controller must know before it can read anything else.
//
// A file of kind Configuration says it. What the file doesn't say has a default,
// and no file at all is a valid configuration. Flags and environment variables of
// the command are laid over it (see Overlay), so that one value can be changed
// without a file.
//
// Invariants:
//   - A configuration that Load returns is whole and valid; every error names the
//     field.
//   - A field that is not known is an error: a misspelt one must not be a default
//     in disguise.
//
// What concerns the fleets of Gateways is not here but in GatewayParameters.
package config
