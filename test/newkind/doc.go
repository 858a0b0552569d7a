// Package newkind is a kind that Gatehouse doesn't have, for tests of what adding one
// takes: its row, and its CustomResourceDefinition. It has no behaviour of its own.
package newkind
