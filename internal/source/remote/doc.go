// Package remote is the source whose objects come from a config server: it subscribes to all
// kinds that are read, in the form of package wire, and keeps what it was told.
//
// Invariants:
//   - A server that is lost, slow or broken costs nothing that is there: an object goes when the
//     server says that it is gone, and never because something ended.
//   - Objects change by whole states: what a server sends takes effect when the state is
//     complete, and what an interrupted stream had begun to send is forgotten.
//   - Objects are validated as those of files are. One that is refused keeps its last valid
//     version, or a stand-in if it guards, costs no other one, and the server is told.
//   - What is kept (Options.StateDir) is in force from the first moment of the next process.
//   - What a server can make a client take is bounded: by message, by number, and by what a state
//     takes before it is complete.
//   - One goroutine owns all objects and calls apply.
package remote
