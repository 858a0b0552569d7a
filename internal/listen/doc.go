// Package listen bounds what the clients of a TCP port can take of a process: how many
// connections there are, of all clients together and of each address.
//
// Invariants:
//   - A connection beyond a bound is closed at once, before anything is read or kept. Those
//     that are open are not touched.
//   - A connection counts until it is closed, however its user closes it.
//
// What is said on a connection, how long it may take, and who may say it, are for the
// servers behind the listener.
package listen
