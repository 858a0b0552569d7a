// Package replicas carries the states that proxies report to the controller that writes
// statuses.
//
// Every replica of the controller serves proxies, and one of them leads. The others
// send it the states of the Gateways that they serve: a Client keeps them, and sends
// all of them to each new leader and then those that change. A Handler receives them
// and passes them on with the name of the replica.
//
// Invariants:
//   - Sending never blocks, and costs one state of memory for each Gateway: what has
//     not been sent yet is replaced by what is newer.
//   - What a replica says after it has come back replaces all that it said before.
//   - What a replica said is void some time after it has gone. In this grace its proxies
//     connect to another replica.
//
// Where proxies can be asked for through any replica, each has a Board that shows the others how its own proxies are,
// and a Reader of theirs.
//
// The caller decides who may connect, and as which replica: the streams are requests to
// the controllers' HTTPS server.
package replicas
