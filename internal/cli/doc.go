// Package cli is what a person sees of Gatehouse on a terminal: tables of
// statuses, the live screen of `gatehouse run`, and the files by which commands
// find a running process.
//
// It prints what control computed and decides nothing itself. Colour appears
// only on a terminal, and never where NO_COLOR is set.
package cli
