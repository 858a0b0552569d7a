// Package kind is the table of the kinds of objects that Gatehouse reads.
//
// Invariants:
//   - Whatever depends on a kind alone stands in this table once, and whoever needs it
//     asks the table.
package kind
