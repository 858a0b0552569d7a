package cluster

import (
	"os"
	"runtime/debug"
)

// heapGrowth is GOGC where nobody has set it. Most of a controller's heap is what it knows of the cluster, and it makes
// little garbage: with 5,000 routes the usual 100 takes a fifth more memory, and saves no CPU that could be measured.
const heapGrowth = 40

// limitHeap returns what takes the collector back to how it was.
func limitHeap() (back func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(heapGrowth)
	return func() { debug.SetGCPercent(before) }
}
