// Package inherited is what our own kinds of policies that are inherited have in common: defaults and
// overrides, what they may be for, and how what is wrong with a field is told.
//
// A further kind is a package beside this one, with what its policies contain, and a table in package
// topology. How policies of several levels are merged is package policy, for any kind.
package inherited
