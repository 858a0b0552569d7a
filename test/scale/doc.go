// Command scale holds an installed Gatehouse to its bars in Kubernetes: what it
// writes, how soon, how much it takes, and what clients notice when a part of it
// ends.
//
//	make cluster && … install Gatehouse … && go run ./test/scale
//
// It works on a cluster that `make cluster` brought up, since it counts writes
// in the API server's audit log: what Gatehouse says of itself is no evidence.
// It makes one namespace with everything in it, and removes it in the end.
//
// Bars are for a machine that does nothing else.
package main
