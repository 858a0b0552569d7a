// Package kind is the table of the kinds of objects that Gatehouse reads: one row, a
// Descriptor, for each of them.
//
// Invariants:
//   - Whatever depends on a kind alone stands in its row, and whoever needs it asks the
//     table. Nobody else lists kinds.
//   - A table is a value that nobody changes. Packages are given one, and use All where
//     they are given none.
//   - A kind has one Go type, that of its first version; every other version that is
//     read is converted to it.
//   - Nothing here reads, writes or decides anything.
//
// What the objects of a kind mean belongs to packages topology and status, and what the
// API server's code checks of them to package schema.
package kind

//go:generate go run gen.go
