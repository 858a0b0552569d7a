// Package standalone is the mode of `gatehouse run`: files in, Envoy processes on this
// machine out. It puts together a source of files, a loop and a fleet of local Envoys.
//
// Invariants:
//   - What is served depends on the files, and on the addresses of this machine.
//   - Envoys outlive the process and are taken over by the next one.
//
// What a person sees of it belongs to packages view and terminal.
package standalone
