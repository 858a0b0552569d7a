// Package writer makes the statuses in the cluster say what they should.
//
// Whoever computes statuses sets them here, as often as they like. The writer
// compares each with the live object and writes what differs: nothing where nothing
// does, and only the last of many where they come fast.
//
// Invariants:
//   - What others have written stays, byte for byte: entries of other controllers,
//     and conditions of types that are not ours, wherever they stand.
//   - A write is an RFC 6902 patch of the places that differ, for exactly the version
//     that it was computed from. Nobody's write is ever overwritten.
//   - A status that was computed from an older generation than the live one is not
//     written: a newer one is on its way.
//   - Objects are written in parallel, each by itself: one that can't be written
//     holds up no other.
//
// What the statuses are is for package status to decide.
package writer
