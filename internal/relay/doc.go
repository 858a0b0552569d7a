// Package relay brings what proxies say to the controller that writes statuses.
//
// Every replica of the controller serves proxies, and one of them leads. The others
// send it the states of the Gateways that they serve: a Client keeps them, and sends
// all of them to each new leader and then those that change. A Handler takes them in
// and tells whose they are.
//
// Invariants:
//   - Sending never blocks, and costs one state of memory for each Gateway: what has
//     not been sent yet is replaced by what is newer.
//   - What a replica says after it has come back replaces all that it said before.
//   - A replica that is gone has said nothing, after a grace in which its proxies find
//     another.
//
// Who may connect, and as which replica, is for the caller to say: the streams are
// requests to the controllers' HTTPS server.
package relay
