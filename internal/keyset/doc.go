// Package keyset is what JSON Web Key Sets are (RFC 7517), which of them are wanted, and where
// whoever fetches them may be led. Package keyset/fetch is who does.
//
// Invariants:
//   - Nothing here does any I/O: a Key is an input table's key like any other, and an Answer
//     its value.
//   - Of a set only public keys that sign are left.
//   - What may be connected to is decided by the address that a name has resolved to, and not
//     by the name alone.
//
// What a policy makes of a set is for package topology to say.
package keyset
