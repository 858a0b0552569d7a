// Package journal is the file in which a source of files keeps what outlives the process:
// of each object the last valid version, and when it was first seen.
//
// Invariants:
//   - Records are appended. A write that is cut short, by a kill or a full disk, costs
//     the records of that write and nothing before them.
//   - What is erased is gone from the file when Erase returns, and needs no room for that.
//   - Any bytes can be read: what isn't a record ends the journal there.
//   - The file is private to the user: it has copies of Secrets.
//   - Its size is bounded by that of what it keeps, and by MaxSize.
//
// The package knows nothing of what an object is. When to write is up to package file.
package journal
