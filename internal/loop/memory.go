package loop

import (
	"os"
	"runtime/debug"
)

// heapGrowth is GOGC where nobody has set it. Most of the heap is what is known of all objects, and changes make
// little garbage: with 5,000 routes the usual 100 takes a fifth more memory, and saves no CPU that could be measured.
const heapGrowth = 40

// LimitHeap has the heap grow less than usual between two collections, and returns what takes the collector back to how it was.
func LimitHeap() (back func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(heapGrowth)
	return func() { debug.SetGCPercent(before) }
}
