// Package flow is an incremental computation engine: tables of values that
// derive from one another, where the cost of a change is proportional to what
// the change touches and not to what exists.
//
// An [Input] holds values by key. [Map], [Group] and [Fold] declare tables that
// derive from it, and an [Index] orders a table's entries under another key. A
// table's function may read any table declared before its own through its [Ctx].
// Each read is remembered as a dependency, also a read that found nothing. When a
// missing value arrives, exactly the functions that have missed it run again.
//
// Laws:
//
//  1. A function is pure: no I/O, no clock, no randomness, and it never writes
//     into what it was given. What must come from outside enters as an input.
//  2. A function reads only tables declared before its own. Declaration order is
//     therefore a topological order, and one pass in that order completes
//     a transaction: nobody ever sees half a change.
//  3. An output key belongs to one unit of work at a time. Two units that emit
//     one key are a programming error; put the source's key into the output's key.
//  4. An output that is equal to the old one changes nothing that derives from it.
//     Each table has its own equality (see [Equal]).
//  5. The same inputs give the same outputs, whatever the order and the grouping
//     in which they came.
//
// One transaction runs at a time. A function that panics keeps the last outputs
// of its unit, and the commit says so. One bad value harms no other table's
// function, and the unit runs again when something that it has read changes. What
// stands failed so far is in [Engine.Failing]: whoever hands outputs on, of which
// one may be a guard, holds them back while it has something of theirs.
//
// What does not belong here: Kubernetes, Envoy, batching policy, persistence.
package flow
