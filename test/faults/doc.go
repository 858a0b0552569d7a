// Package faults breaks what is around controllers, under changes, and counts what follows
// outside of what was broken. README.md names the test of each fault; `make faults` runs all.
package faults
