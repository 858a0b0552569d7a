// Package spelling finds the name that somebody may have meant who wrote one that nothing
// has.
//
// Invariants:
//   - The answer depends on the names and their order alone. Of several that are as near, it
//     is the first.
//   - The cost is bounded, whatever is written and however many names there are.
//
// Which names may be told to whom is up to the caller.
package spelling
