// Package fleet says of each proxy what it has, what it is to have, and how it is.
//
// A controller knows its own sessions, and each controller is asked; the cluster, or the
// process that started a proxy, knows the pods. List is what one controller answers, Join
// lays the pods over what all have answered, so that a proxy without a session has a row too.
//
// Invariants:
//   - There is no I/O here, and nothing is kept: who asks gets what is true now.
//   - Nothing here holds a resource's content, hence no secret.
//   - Whose proxy it is and which pod follows from its certificate. What a proxy says of
//     itself is shown, and nothing follows from it.
//
// A second kind of report, such as what a proxy counts, gets a type of its own beside Proxy and
// a path of its own in package admin; Proxy is for what has one value for each proxy.
package fleet
