package proxy

import (
	"math"

	"golang.org/x/sys/unix"
)

// maxConnections is the most clients that one Envoy serves at a time, where the
// system allows it as many open files. The others are turned away at once;
// without a limit they would take the memory of those who are there.
const maxConnections = 50_000

// connectionLimit is how many clients an Envoy may have with so many open files.
// A client may need a connection to a backend too, and Envoy without a file left
// can reach neither its backends nor its control plane.
func connectionLimit(openFiles uint64) uint64 {
	return min(max(openFiles/2, 1), maxConnections)
}

// openFiles is how many files an Envoy may open: it starts by raising its own
// limit to the hard one.
func openFiles() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxUint64
	}
	return uint64(limit.Max)
}
