// Command licences checks that everything which is compiled into the binary has a licence
// under which it may be: it looks at the modules behind cmd/gatehouse, in Go's own cache,
// and prints each with its licence.
//
//	go run -C tools ./licences [PACKAGE]
//
// A licence is known by the sentences that make it what it is. A module whose text is none
// of these, or that has none, fails: somebody reads it and adds it here.
package main
