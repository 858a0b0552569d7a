// Package echo is a small backend that tells what reached it: the quickstart
// routes to it and the end-to-end tests read their answers from it.
//
// Every request is answered with JSON (see [Answer]); query parameters or
// headers ask for faults (see [Script]): a status, a delay, a cut connection,
// for the first few requests of a key only if wanted. What arrived is kept in a
// bounded log under /_echo/log, so that mirrored requests can be counted. An
// Upgrade to websocket on any path gets its messages back. A gRPC call of any
// service and method gets the same JSON in a StringValue. Beside it there are
// backends that echo lines over TCP or TLS and datagrams over UDP.
//
// Invariants:
//   - HTTP/1.1 and cleartext HTTP/2 (prior knowledge) share one port.
//   - Memory is bounded whatever clients send.
//
// It knows nothing of Gateways or of Envoy.
package echo
