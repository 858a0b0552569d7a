// Package migrate turns Ingresses, as ingress-nginx serves them, into objects of the Gateway API and
// policies of ours, with a report of each annotation.
//
// It goes the way of ingress-nginx itself: Ingresses become servers, one for each host, with locations in
// nginx's sense, and these become routes. What holds for a host across Ingresses, such as that one regular
// expression makes all its paths regular expressions, is known in the servers alone.
//
// Invariants:
//   - Everything of an Ingress is in the result, or a Finding says what is not. No annotation is
//     dropped in silence: the table in annotations.go has all that there are, and others are findings.
//   - What protects and can't be converted is a Finding with Opens, and whoever asked gets no result
//     unless they say that they want it nevertheless.
//   - The result depends on the input alone, not on its order.
//
// There is no I/O here. Files, clusters and texts for people are the business of cmd/gatehouse.
package migrate
