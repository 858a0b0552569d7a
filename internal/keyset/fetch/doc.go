// Package fetch fetches the JSON Web Key Sets that the pipeline wants, keeps them fresh, and
// hands over what it knows.
//
// Invariants:
//   - Each key of a set is fetched by itself, and waits for no other one: a server that never
//     answers holds up nobody else's keys.
//   - Every URL, that of a redirect or of an issuer's configuration too, and every address that
//     a name has resolved to, is checked by the key's Reach before anything is sent. The address
//     that was checked is the one that is connected to.
//   - What is read is bounded in bytes and time. No body is logged or put into a message.
//   - A set that was good stays until there is another good one.
//
// What a set is, and where fetching may lead, is for package keyset to say. Who wants one, and
// what becomes of a policy without, is none of this package's business.
package fetch
