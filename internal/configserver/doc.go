// Package configserver publishes objects to other installations of Gatehouse: it is the server
// of what package source/remote subscribes to, in the form of package wire.
//
// Invariants:
//   - Nobody is answered before all objects are known, so that nobody takes an object for gone
//     that has not been read yet.
//   - A client sees the namespaces that it may see, and Secrets only if it may see them. Who is
//     not known sees nothing.
//   - What waits for a client is names, each once: a slow client has the newest of each object
//     when it reads again, takes no more memory than the names of all objects, and holds up
//     nobody else.
//   - A client is told what differs from what it has, and learns where a state ends.
//
// Where objects come from is the matter of whoever calls Apply.
package configserver
