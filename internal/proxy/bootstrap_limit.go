package proxy

import (
	"math"

	"golang.org/x/sys/unix"
)

// maxConnections is the most clients that one Envoy serves at a time, where the system
// allows it as many open files. Further clients are refused at once. Without a limit
// they would take the memory that the others need.
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
