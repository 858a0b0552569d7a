// Package source defines what a configuration source hands to the pipeline:
// batches of decoded objects, and problems with what could not be used.
//
// Invariants:
//   - A source interprets nothing: it decodes, defaults and validates by the
//     kind's own schema, and reports. What an object means is up to package topology.
//   - The first batch is the whole state at the start; later ones are differences.
//   - An invalid object never replaces a valid one: its last valid version stays
//     in force and the problem says so. A policy in files that guards and has none is
//     replaced by a stand-in, by which nobody passes.
//
// The packages below this one watch files or an API server.
package source
