// Package terminal is what a person sees of Gatehouse on a terminal: tables of
// statuses, the live screen of `gatehouse run`, and the files by which commands
// find a running process.
//
// It prints what a view says and decides nothing itself. A frame of the
// screen is a pure function of the view, the log and the window's size: what is
// wrong and what to try are always visible, whatever the number of objects, and no
// line is wider than the window. Text from files and from Envoy is printed without
// control characters. Off a terminal nothing is cut. Colour appears only on a
// terminal, and never where NO_COLOR is set.
package terminal
