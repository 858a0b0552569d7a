// Package bars compares measured figures with the bars that the project holds
// itself to, and keeps the last figure of each bar in a file that is checked in.
//
// Whatever measures a bar writes its figure with Record: `make bench`, `make
// scale`, and `go run ./test/bars/record` for what is counted otherwise.
//
// Invariants:
//   - A bar is an upper limit. Of what should be many, count what is missing.
//   - A figure that was not measured does not hold its bar.
//   - A figure says of which commit it is and from which machine: those of one
//     file may be of several runs.
//   - Record replaces the figures of the bars that it is given, and no others.
package bars
