// Package view is what a person or a page may ask of a pipeline: the objects with
// their statuses, boiled down to a row each, what is wrong with inputs, and every
// stage as text.
//
// Invariants:
//   - A view is of one commit, and a copy: whoever has it may change it.
//   - It is the same whether the pipeline runs or has been evaluated once.
//   - There is no client here: what a cluster holds comes as objects.
//
// How a view is drawn on a terminal belongs to package terminal.
package view
