// Package echo is a small backend that answers a request with a description of it.
// The quickstart routes to it, and the end-to-end tests learn from its answers what
// Envoy has sent.
//
// Every request is answered with JSON (see [Answer]). Query parameters or
// headers ask for faults (see [Script]): a status, a delay or a cut connection,
// for the first few requests of a key only if wanted. The last requests are in a
// bounded log under /_echo/log, so that mirrored requests can be counted. A
// WebSocket on any path gets its messages back. A gRPC call of any
// service and method gets the same JSON in a StringValue. Beside it there are
// backends that echo lines over TCP or TLS and datagrams over UDP.
//
// Invariants:
//   - HTTP/1.1 and cleartext HTTP/2 (prior knowledge) share one port.
//   - Memory is bounded whatever clients send.
//
// It knows nothing of Gateways or of Envoy.
package echo
