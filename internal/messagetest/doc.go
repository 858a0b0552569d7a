// Package messagetest holds what a test may expect of any text that a person reads about
// an input of somebody else: an error, a problem, the message of a condition.
//
// Invariants:
//   - A text that passes can be printed on a terminal and stored in a status.
//   - Nothing but tests imports this package.
//
// What a text has to say, a test looks for itself.
package messagetest
