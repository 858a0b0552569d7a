// Package status says what the status of every object is to be.
//
// The functions are pure: they take a topology node and what the proxies say, and
// give the whole status that Gatehouse would write. Merging it with the entries
// and conditions of other controllers, comparing it with the live object and
// writing it are the writer's.
//
// Invariants:
//   - Every condition carries the generation of the object as it was read;
//     lastTransitionTime is zero, since only the writer sees a status flip.
//   - Programmed is true only of what a proxy has acknowledged and what has an
//     address.
//   - Equal inputs give equal statuses, with conditions in a fixed order.
//
// The texts of conditions are package condition's.
package status
