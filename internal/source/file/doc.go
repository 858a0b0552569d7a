// Package file is the source for manifests on disk: directories, files and
// standard input, YAML and JSON, watched for changes.
//
// Text becomes objects in steps, and each step has a Go file of its name: walk finds
// the files, split cuts them into documents, node and value read the syntax,
// definition holds one object, which package schema has validated, index decides
// which definition of a key is in force, and watch says when to do it all again.
//
// Invariants:
//   - What is refused keeps its last valid version, by the key that its text has. Text that can't
//     be read may be about any object, so what its file had stays, but for what the rest of it defines.
//   - What is deleted is gone, whatever else is wrong in its file.
//   - A file is read soon after it was closed or renamed into place, and not while it is being
//     written; a removal waits for what may belong to it (completeness).
//   - The cost of a save is that of the documents that changed: others are
//     recognised by the hash of their text, before any of it is decoded.
//   - The first of two definitions of one object is used. The order is that of the
//     paths as given; below one path what is in force stays, and then it is that of the files
//     by name, and of the documents from the top.
//   - No text, syntax tree or generic value is kept after its scan.
//   - What is kept (Options.StateDir) makes a process go on from where the one before was:
//     restore gives the first scan what that process had in force, and from there a
//     mistake, a deletion and an age mean what they mean without a restart.
//   - What never was valid is nothing, or a stand-in (package schema) if it guards.
//   - One goroutine owns all state and calls apply.
package file
