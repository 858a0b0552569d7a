// Package file is the source for manifests on disk: directories, files and
// standard input, YAML and JSON, watched for changes.
//
// Text becomes objects in steps of one file each: walk (which files), split
// (documents), node and value (syntax), definition (one object, validated by
// package schema), index (which definition of a key is in force), and watch
// (when to do it again).
//
// Invariants:
//   - Nothing vanishes because of a mistake or a half-written file: what can't be
//     read, parsed or validated keeps its last valid version, and a problem says so.
//   - The cost of a save is that of the documents that changed: others are
//     recognised by the hash of their text, before any of it is decoded.
//   - Order decides between two definitions of one object: paths as given, files
//     by name, documents from the top.
//   - No text, syntax tree or generic value outlives its scan.
//   - One goroutine owns all state and calls apply.
package file
