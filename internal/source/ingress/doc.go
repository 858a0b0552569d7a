// Package ingress is the source of what becomes of Ingresses: it serves them as they are, by the translation of
// `gatehouse migrate`.
//
// It reads nothing itself. A loop gives it what other sources bring, Ingresses among it, and takes objects of the
// Gateway API and policies from it as from a further source, which is the last one: an object that somebody has
// written counts before one of the same name that is made here.
//
// Invariants:
//   - What is made depends on the objects that were taken in alone, not on their order.
//   - An Ingress that protects something in a way that can't be converted is refused, and answers 503.
//   - The Gateway is there from the beginning, whatever Ingresses there are, so that its address stays.
//   - All is translated anew when an Ingress changes, or a Service, Secret or ConfigMap that counts. Only what is
//     another than before is handed on.
//   - What is made is valid by the schemas of its kinds, and has their defaults, as what is read.
package ingress
