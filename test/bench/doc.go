// Command bench measures what one change costs and how soon it is in force, at
// several numbers of routes, and compares the figures with the bars that the
// project holds itself to.
//
// It has two halves. In process, the pipeline alone is given validated objects,
// which shows what the control plane itself spends. For real, `gatehouse run`
// serves a directory of files with a real Envoy, and a change is a file renamed
// into place, which shows what a user sees.
//
// Invariants:
//   - Both halves make the same changes to the same objects: see inventory.
//   - Load is a few clients on loopback; everything is bounded in time.
//   - Nothing that was started outlives the command, signals included.
//
// What a figure means is written in bench/README.md, which belongs to this code.
package main
