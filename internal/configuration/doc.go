// Package configuration is the bootstrap configuration of `gatehouse controller`: what a
// controller must know before it can read anything else.
//
// It is in a file of kind Configuration. What the file doesn't say has a default,
// and no file at all is a valid configuration. Flags and environment variables of
// the command take precedence over it (see Overlay), so that one value can be
// changed without a file.
//
// Invariants:
//   - A configuration that Load returns is whole and valid; every error names the
//     field.
//   - A field that is not known is an error. Otherwise a misspelt field would
//     silently mean the default.
//
// Settings of the fleets of Gateways do not belong here. GatewayParameters has them.
package configuration
